"""``ishiki demo``: the whole thing without any account, in half a minute.

Nothing here is a shortcut: loopback servers speak the platforms' protocols, the real client libraries connect to them,
a runtime is called over HTTP, and the log is a folder that stays for a person to look at.
"""

import asyncio
import base64
import os
import shlex
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import httpx
from pydantic import SecretStr
from rich.console import Console
from rich.text import Text

from bots.app import App
from bots.diagnostics import configure
from bots.run import serve
from bots.sandbox.discord import DiscordSandbox
from bots.sandbox.discord import File as DiscordFile
from bots.sandbox.runtime import RuntimeSandbox, Turn
from bots.sandbox.telegram import File as TelegramFile
from bots.sandbox.telegram import TelegramSandbox
from bots.settings import Settings
from core import audit
from core.access import AllowRules
from core.content import for_terminal, plain_text
from core.entries import AnyEntry, AssistantMessage, Attachment, MessageCreated, MessageDeleted, ToolMessage, fact_of
from core.ids import SessionId, discord_session, telegram_session
from core.log.view import View

WITHIN: Final = 20.0
PICTURE: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAIAAACQkWg2AAAAGklEQVR42mP8z8BQz0ACYCJF8aiGUQ1Dk2YAVdcBH/sTpGAAAAAASUVORK5CYII="
)

T = TypeVar("T")
console = Console(highlight=False, markup=False, soft_wrap=True)


class Scene:
    """One chat on one platform: says what a person does, waits until the log has it, and shows what was added."""

    def __init__(self, app: App, title: str, session: SessionId) -> None:
        self._app = app
        self._session = session
        self._shown = 0
        console.print(Text(f"\n{title}  ", style="bold").append(session, style="dim"))

    async def act(self, told: str, deed: Awaitable[T], until: Callable[[list[AnyEntry]], bool]) -> T:
        """Do something as a person, and show the lines that come of it. Returns what the deed gives."""
        console.print(Text(f"  {told}", style="cyan"))
        done = await deed
        entries = await self._wait(until)
        for entry in entries[self._shown :]:
            console.print(Text(f"    + {describe(entry)}"))
        self._shown = len(entries)
        return done

    async def _wait(self, until: Callable[[list[AnyEntry]], bool]) -> list[AnyEntry]:
        async with asyncio.timeout(WITHIN):
            while True:
                session = self._app.sessions.of(self._session)
                entries = [recorded.entry for recorded in session.read()]
                if until(entries[self._shown :]):
                    return entries
                await asyncio.sleep(0.02)


def describe(entry: AnyEntry) -> str:
    """One log line in a few words, safe to print."""
    fact = fact_of(entry)
    match fact:
        case MessageCreated():
            edit = f" (revision {fact.edited.revision})" if fact.edited else ""
            return f"ishiki.message.created{edit}  {for_terminal(f'{fact.user.name}: {plain_text(fact.content)}')}"
        case MessageDeleted():
            return f"ishiki.message.deleted  message {fact.message_id}"
        case Attachment():
            return f"ishiki.attachment  {', '.join(item.media_type for item in fact.items)}"
        case None:
            pass
    match entry.data:
        case AssistantMessage():
            return "assistant  send_message"
        case ToolMessage():
            return "tool  sent"
        case data:
            return getattr(data.__struct_config__, "tag", None) or entry.type


def created(entries: list[AnyEntry]) -> bool:
    return any(isinstance(fact_of(entry), MessageCreated) for entry in entries)


def deleted(entries: list[AnyEntry]) -> bool:
    return any(isinstance(fact_of(entry), MessageDeleted) for entry in entries)


def answered(entries: list[AnyEntry]) -> bool:
    return any(describe(entry) == "turn.done" for entry in entries)


class Agent:
    """The demo's agent: goes by the newest revision of what was said, and asks for leave before it writes a file."""

    def __init__(self) -> None:
        self.runtime = RuntimeSandbox(self.think)
        self.api = ""

    async def think(self, turn: Turn) -> dict[str, object]:
        texts: dict[str, str] = {}
        for entry in turn.delivered:
            fact = entry["data"].get("data", {})
            if entry["data"].get("type") == "ishiki.message.created":
                texts[fact["messageId"]] = plain_text(fact["content"])
            elif entry["data"].get("type") == "ishiki.message.deleted":
                texts.pop(fact["messageId"], None)
        if "write" in list(texts.values())[-1]:
            return await self._write(turn)
        side = "right" if any("right" in text for text in texts.values()) else "left"
        told = f"`{len(texts)}` {'message' if len(texts) == 1 else 'messages'}"
        return {"reply": f"On the **{side}**, as far as I know. I was told {told}, and woken by rule *{turn.rule}*."}

    async def _write(self, turn: Turn) -> dict[str, object]:
        """Ask in the chat, and wait for what is decided there."""
        async with httpx.AsyncClient(trust_env=False) as client:
            asked = await client.post(
                f"{self.api}/v1/session/{turn.session}/confirm",
                headers={"Authorization": f"Bearer {self.runtime.token}"},
                json={"tool": "write_file", "args": {"path": "notes.md", "content": "the right one"}},
            )
        task = asked.raise_for_status().json()["task_hash"]
        await self.runtime.until(lambda: task in self.runtime.decisions, within=WITHIN)
        approved = self.runtime.decisions[task]["status"] == "approved"
        return {"reply": "It is noted." if approved else "Then I leave it."}


async def play(*, keep: bool = False) -> None:
    """Run the demo. Raises `TimeoutError` if something that should happen does not."""
    configure("warning", "console")
    named = os.environ.get("ISHIKI_DATA_DIR")
    folder = Path(named or "demo-data")
    console.print(f"ishiki demo: writes to {folder}{' (from ISHIKI_DATA_DIR)' if named else ''}")
    telegram = TelegramSandbox(numbers_from=int(time.time()) % 1_000_000_000)
    agent = Agent()
    async with agent.runtime as runtime, DiscordSandbox() as discord, telegram:
        settings = Settings(
            discord_token=SecretStr(discord.token),
            discord_api_url=discord.api_url,
            discord_gateway_url=discord.gateway_url,
            discord_cdn_hosts=(discord.cdn_host,),
            discord_allow=AllowRules.parse("*"),
            telegram_token=SecretStr(telegram.token),
            telegram_api_url=telegram.api_url,
            telegram_allow=AllowRules.parse("*"),
            ishiki_data_dir=folder,
            ishiki_runtime_url=runtime.url,
            ishiki_runtime_token=SecretStr(runtime.token),
            ishiki_http_port=0,
        )
        stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(settings, stop, ready=started.set_result), name="serve")
        try:
            await asyncio.wait({serving, started}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
            app: App = await started
            agent.api = app.web.address
            sessions = [
                await on_discord(app, discord),
                await on_telegram(app, telegram),
                await on_telegram_business(app, telegram),
            ]
            if keep:
                sessions += await talk(discord, telegram)
        finally:
            stop.set()
            await serving
    summarise(folder, sessions)


async def on_discord(app: App, discord: DiscordSandbox) -> SessionId:
    await discord.connected(WITHIN)
    channel = discord.guild("Film club").text_channel("kitchen")
    mona, jiro = discord.user("Mona"), discord.user("Jiro")
    session = discord_session(channel.id)
    scene = Scene(app, "Discord, channel #kitchen", session)
    text = "the kettle is in the left cupboard"
    message = await scene.act(f"Mona says: {text}", mona.say(channel, text), created)
    await scene.act("Mona edits it: left becomes right", mona.edit(message, text.replace("left", "right")), created)
    hasty = await scene.act("Jiro says something hasty", jiro.say(channel, "I broke the kettle!"), created)
    await scene.act("Jiro takes it back", jiro.delete(hasty), deleted)
    picture = DiscordFile("cupboards.png", PICTURE, "image/png")
    question = f"<@{discord.bot.id}> is it this one?"
    asked = jiro.say(channel, question, files=[picture])
    await scene.act("Jiro sends a picture and asks @Ishiki: is it this one?", asked, answered)
    answer = await discord.bot_message(channel, within=WITHIN)
    console.print(Text(f"  Ishiki answers in the channel: {for_terminal(answer.content)}", style="green"))
    asked = asyncio.create_task(jiro.say(channel, f"<@{discord.bot.id}> please write that down"))
    prompt = await discord.bot_message(channel, containing="May I use", within=WITHIN)
    console.print(Text(f"  Jiro asks it to write that down; Ishiki asks him: {asking(prompt.content)}", style="green"))
    await scene.act("Jiro presses Yes", press(jiro.press(prompt, "Yes"), asked), answered)
    await discord.until(lambda: not prompt.components, WITHIN)
    console.print(Text(f"  The prompt now says: {asking(prompt.content, last=True)}", style="green"))
    return session


async def on_telegram(app: App, telegram: TelegramSandbox) -> SessionId:
    mona, jiro = telegram.user("Mona"), telegram.user("Jiro")
    group = telegram.supergroup("Film club", [mona, jiro])
    session = telegram_session(group.id)
    scene = Scene(app, "Telegram, group Film club", session)
    text = "the film is on the left screen"
    message = await scene.act(f"Mona says: {text}", mona.say(group, text), created)
    await scene.act("Mona edits it: left becomes right", mona.edit(message, text.replace("left", "right")), created)
    picture = TelegramFile("poster.png", PICTURE, "image/png", width=16, height=16)
    asked = jiro.say(group, f"@{telegram.bot.username} is it this one?", photo=picture)
    await scene.act("Jiro sends a picture and asks the bot: is it this one?", asked, answered)
    answer = await telegram.bot_message(group, within=WITHIN)
    console.print(Text(f"  Ishiki answers in the group: {for_terminal(answer.text)}", style="green"))
    asked = asyncio.create_task(jiro.say(group, f"@{telegram.bot.username} please write that down"))
    prompt = await telegram.bot_message(group, containing="May I use", within=WITHIN)
    console.print(Text(f"  Jiro asks it to write that down; Ishiki asks him: {asking(prompt.text)}", style="green"))
    await scene.act("Jiro presses Yes", press(jiro.press(prompt, "Yes"), asked), answered)
    await telegram.until(lambda: not prompt.buttons, WITHIN)
    console.print(Text(f"  The prompt now says: {asking(prompt.text, last=True)}", style="green"))
    return session


async def on_telegram_business(app: App, telegram: TelegramSandbox) -> SessionId:
    """Telegram tells bots of retractions only here."""
    owner, guest = telegram.user("Mona"), telegram.user("Jiro")
    connection = await owner.connect_business()
    chat = guest.business_chat(connection)
    session = telegram_session(chat.id, connection.id)
    scene = Scene(app, "Telegram, Mona's business chat with Jiro", session)
    asked = guest.say(chat, "I broke the projector! Which side was it on?")
    hasty = await scene.act("Jiro asks something hasty", asked, answered)
    answer = await telegram.bot_message(chat, within=WITHIN)
    console.print(Text(f"  Ishiki answers in the chat: {for_terminal(answer.text)}", style="green"))
    await scene.act("Jiro takes it back", guest.delete(hasty), deleted)
    return session


async def press(pressing: Awaitable[object], asked: Awaitable[object]) -> None:
    """Press a button, once the person has said what it is about."""
    await asked
    await pressing


def asking(text: str, *, last: bool = False) -> str:
    """The first or last line of a prompt, safe to print."""
    lines = [line for line in text.split("\n") if line.strip()]
    return for_terminal(lines[-1 if last else 0].replace("*", "").replace("`", ""))


async def talk(discord: DiscordSandbox, telegram: TelegramSandbox) -> list[SessionId]:
    """Let a person at the terminal write to the bot on either platform, until end of input or Ctrl-C."""
    here, there = discord.user("You"), telegram.user("You")
    direct, private = discord.dm(here), there.private_chat
    console.print("\nIt goes on. Type  d TEXT  to write to the bot on Discord,  t TEXT  on Telegram; Ctrl-D ends.")
    try:
        async for line in typed_lines():
            platform, _, text = line.strip().partition(" ")
            if platform == "d" and text:
                await here.say(direct, text)
                answer = (await discord.bot_message(direct, within=WITHIN)).content
            elif platform == "t" and text:
                await there.say(private, text)
                answer = (await telegram.bot_message(private, within=WITHIN)).text
            else:
                console.print("d or t, a blank, and a text")
                continue
            console.print(Text(f"  Ishiki: {for_terminal(answer)}", style="green"))
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()  # Ctrl-C ends the talk, not the demo
    return [discord_session(direct.id), telegram_session(private.id)]


async def typed_lines() -> AsyncIterator[str]:
    """Lines of standard input. Its thread does not hold up the end of the program, as it may wait for ever."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str]()

    def read() -> None:
        while line := sys.stdin.readline():
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, "")

    threading.Thread(target=read, name="typed lines", daemon=True).start()
    while line := await lines.get():
        yield line


def summarise(folder: Path, sessions: list[SessionId]) -> None:
    """What is left behind, and how to look at it."""
    console.print()
    for path in (folder / "runtimes" / session / "events.jsonl" for session in sessions):
        if not path.exists():
            continue  # nothing was said there
        findings = list(audit.check(View(path, []), path.parent / "resources" / "assets"))
        for finding in findings:
            console.print(f"{path}: line {finding.line}: {finding.message}")
        console.print(f"{path}: {'see above' if findings else 'every line as the format says'}")
    quoted, command = shlex.quote(str(folder)), shlex.quote(sys.argv[0])
    console.print(
        f"\nLook at it:  ISHIKI_DATA_DIR={quoted} {command} log timeline\n"
        f"             jq -r .type {quoted}/runtimes/*/events.jsonl | sort | uniq -c"
    )
