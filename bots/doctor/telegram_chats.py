"""What the bot may do in the Telegram chats that there are sessions of."""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from bots.doctor.calls import Refused, Told
from bots.doctor.telegram import Telegram
from bots.doctor.verdict import Check, Verdict, fail, listed, ok, warn
from core.ids import SessionId, business_connection_of, channel_of

MOST: Final = 50
"""Chats that are asked about, those first that were written in last."""
AT_ONCE: Final = 5


class Permissions(Told):
    """What everybody in a group may do who is no administrator."""

    can_send_messages: bool = True
    can_send_photos: bool = True
    can_send_documents: bool = True


class Chat(Told):
    type: str
    permissions: Permissions = Permissions()


class Member(Permissions):
    """Of an administrator ``can_post_messages`` counts in channels, of a restricted member the rest."""

    status: str
    can_post_messages: bool = True


class Connection(Told):
    is_enabled: bool = True


class Barred(NamedTuple):
    """Why the bot cannot speak, or not send files, in a chat; both empty where it can."""

    session: SessionId
    speaking: str = ""
    files: str = ""


class Chats:
    """Direct chats are not asked about: whether somebody has blocked the bot shows only when it writes."""

    def __init__(self, telegram: Telegram, sessions: Sequence[SessionId]) -> None:
        self._telegram = telegram
        self._sessions = [session for session in sessions if _is_asked_about(session)]
        self._turnstile = asyncio.Semaphore(AT_ONCE)

    def checks(self) -> list[Check]:
        return [Check("telegram.chats", self.look_at_chats)]

    async def look_at_chats(self) -> Verdict:
        """Whether the bot is still there, and may write."""
        me = (await self._telegram.account()).id
        asked = self._sessions[:MOST]
        if not asked:
            return ok("there are no groups or channels to look at yet")
        barred = await asyncio.gather(*(self._look(session, me) for session in asked))
        cure = "add the bot, or give it that right; or leave the chat out, with !<chat id> in TELEGRAM_ALLOW"
        silent = [f"{one.session} ({one.speaking})" for one in barred if one.speaking]
        if silent:
            return fail(f"the bot cannot write in {listed(silent)}", cure)
        without = [f"{one.session} ({one.files})" for one in barred if one.files]
        if without:
            return warn(f"the bot cannot send files in {listed(without)}", cure)
        newest = f"the newest {len(asked)} of {len(self._sessions)} groups and channels"
        where = newest if len(asked) < len(self._sessions) else f"every group and channel ({len(asked)})"
        return ok(f"the bot may write in {where}")

    async def _look(self, session: SessionId, me: int) -> Barred:
        connection = business_connection_of(session)
        async with self._turnstile:
            try:
                if connection is not None:
                    found = await self._telegram.ask(
                        "getBusinessConnection", Connection, business_connection_id=connection
                    )
                    return Barred(session, "" if found.is_enabled else "the business connection is off")
                chat = channel_of(session)
                place = await self._telegram.ask("getChat", Chat, chat_id=chat)
                member = await self._telegram.ask("getChatMember", Member, chat_id=chat, user_id=me)
            except Refused as refused:
                return _of_refusal(session, refused)
        return _of_member(session, place, member)


def _is_asked_about(session: SessionId) -> bool:
    return business_connection_of(session) is not None or channel_of(session).startswith("-")


def _of_refusal(session: SessionId, refused: Refused) -> Barred:
    if "upgraded to a supergroup" in refused.reason:
        return Barred(session)  # it goes on as another session, which is looked at itself
    return Barred(session, "it is not there" if refused.status == 403 else "it does not know that chat")


def _of_member(session: SessionId, place: Chat, member: Member) -> Barred:
    if member.status in {"left", "kicked"}:
        return Barred(session, "it is not there")
    if member.status in {"administrator", "creator"}:
        mute = place.type == "channel" and member.status == "administrator" and not member.can_post_messages
        return Barred(session, "it may not post there" if mute else "")
    if place.type == "channel":
        return Barred(session, "it is no administrator there")
    granted = [place.permissions, *([member] if member.status == "restricted" else [])]
    if not all(one.can_send_messages for one in granted):
        return Barred(session, "members may not write there")
    if not all(one.can_send_photos and one.can_send_documents for one in granted):
        return Barred(session, files="members may not send files there")
    return Barred(session)
