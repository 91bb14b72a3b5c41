"""Discord's payloads, through the real library, into facts."""

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bots.discord import convert
from bots.discord.markdown import Names, read_markdown
from bots.discord.media import links_of
from bots.discord.people import Me
from bots.discord.veil import Veil
from core.content import mentions, parse, plain_text, render
from core.entries import MessageCreated
from core.ids import UserId, asset_id, discord_session
from core.sessions.facts import Said
from tests.bots.discord.payloads import (
    BOT,
    CHANNEL,
    DM,
    GUILD,
    JIRO,
    MESSAGE,
    MONA,
    ROLE,
    THREAD,
    Library,
    Payload,
    attachment,
    member,
    message,
    user,
)

ME = Me(id=UserId(BOT))
VEIL = Veil(("cdn.discordapp.com", "media.discordapp.net"))


@pytest.fixture
async def library() -> Library:
    return Library()


def said(library: Library, payload: Payload) -> Said:
    parsed, sent_at = library.read(payload)
    return convert.message_created(parsed, me=ME, veil=VEIL, sent_at=sent_at)


def created(library: Library, payload: Payload) -> MessageCreated:
    return said(library, payload).message


def content(library: Library, payload: Payload) -> str:
    return created(library, payload).content


def shown(text: str, **names: Any) -> str:
    return render(read_markdown(text, Names(**names)))


# --- the base -----------------------------------------------------------------------------------------------------


async def test_a_message_has_its_place_author_and_the_time_of_the_payload(library: Library) -> None:
    fact = created(library, message(member=member(nick="Mo")))
    assert fact == MessageCreated(
        platform="discord",
        self_id=ME.id,
        channel_id=fact.channel_id,
        message_id=fact.message_id,
        timestamp=1793559600123,
        content="hello",
        is_direct=False,
        user=fact.user,
        guild_id=GUILD,
    )
    assert (fact.channel_id, fact.message_id) == (CHANNEL, MESSAGE)
    assert (fact.user.id, fact.user.name) == (MONA, "Mo")


async def test_without_a_nickname_the_display_name_counts_and_then_the_account_name(library: Library) -> None:
    assert created(library, message(member=member(nick=None))).user.name == "Mona"
    assert created(library, message(author=user(MONA, "Mona", global_name=None), member=...)).user.name == "mona"


async def test_a_direct_message_has_no_guild(library: Library) -> None:
    fact = created(library, message(channel_id=DM, guild_id=..., member=...))
    assert fact.is_direct
    assert fact.guild_id is None


async def test_a_thread_is_a_session_of_its_own_and_its_parent_is_known(library: Library) -> None:
    parsed, _ = library.read(message(channel_id=THREAD))
    assert convert.message_created(parsed, me=ME, veil=VEIL).message.channel_id == THREAD
    place = convert.visit(parsed)
    assert (place.channel, place.parent, place.guild, place.user, place.direct) == (THREAD, CHANNEL, GUILD, MONA, False)


async def test_a_message_of_a_server_that_is_not_known_yet_is_not_direct(library: Library) -> None:
    fact = created(library, message(guild_id="77", channel_id="78"))
    assert (fact.guild_id, fact.is_direct) == ("77", False)


async def test_bots_webhooks_and_missing_authors_are_marked(library: Library) -> None:
    assert created(library, message()).via is None
    assert created(library, message(author=user(JIRO, "Robot", bot=True))).via == "bot"
    hook = message(webhook_id="55", author=user("55", "@everyone", bot=True), member=...)
    assert created(library, hook).via == "webhook"
    assert created(library, hook).user.name == "@everyone"
    assert created(library, hook | {"application_id": "55"}).via == "bot"
    nobody = created(library, message(author=..., member=...))
    assert (nobody.via, nobody.user.id, nobody.user.name) == ("channel", CHANNEL, None)


# --- text ---------------------------------------------------------------------------------------------------------


async def test_tokens_become_elements_with_the_names_that_came_along(library: Library) -> None:
    text = f"<@{JIRO}> <@!{BOT}> <@&{ROLE}> <#{CHANNEL}> <#5> <:pog:7> <a:wave:8> </ask now:9> <t:1793559600:R>"
    named = [user(JIRO, "Jiro") | {"member": member(nick="J & J")}]
    assert content(library, message(text, mentions=named, mention_roles=[ROLE])) == (
        f'<at id="{JIRO}" name="J &amp; J"/> <at id="{BOT}"/> <at role="{ROLE}" name="mods"/> '
        f'<sharp id="{CHANNEL}" name="general"/> <sharp id="5"/> <emoji id="7" name="pog"/> '
        '<emoji id="8" name="wave"/> /ask now 2026-11-01 19:00 UTC'
    )


async def test_everyone_is_an_element_only_if_everyone_is_really_called(library: Library) -> None:
    assert content(library, message("@everyone look")) == "@everyone look"
    assert content(library, message("@here look", mention_everyone=True)) == '<at type="all"/> look'


async def test_a_reply_ping_is_no_mention(library: Library) -> None:
    fact = created(library, message("yes", type=19, mentions=[user(BOT, "Ishiki", bot=True)]))
    assert mentions(fact.content) == frozenset()


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        (
            "**b** *i* _i_ __u__ ~~s~~ ||spoiler||",
            "<b>b</b> <i>i</i> <i>i</i> <u>u</u> <s>s</s> <spl>spoiler</spl>",
        ),
        ("***both*** ___both___", "<b><i>both</i></b> <u><i>both</i></u>"),
        ("`<@1> **x**` after", "<code>&lt;@1&gt; **x**</code> after"),
        ("``a`b``", "<code>a`b</code>"),
        ("```py\nprint('**')\n```", "<code-block lang=\"py\">print('**')</code-block>"),
        ("see ```one line```", "see <code-block>one line</code-block>"),
        ("> one\n> two\nthree", "<quote>one\ntwo</quote>three"),
        ("a\n>>> b\nc", "a\n<quote>b\nc</quote>"),
        ("> ```\n> a\n> ```\nb", "<quote><code-block>a</code-block></quote>b"),
        ("```\n> a\n```", "<code-block>&gt; a</code-block>"),
        ("[a *b*](https://x.org/c_d)", '<a href="https://x.org/c_d">a <i>b</i></a>'),
        ("[a](javascript:alert(1))", "[a](javascript:alert(1))"),
        ("**https://x.org/a_b_c**", "<b>https://x.org/a_b_c</b>"),
        ("<https://x.org/>", "https://x.org/"),
        ("snake_case_name, 2 * 3 * 4, a ** b", "snake_case_name, 2 * 3 * 4, a ** b"),
        ("**never closed *nor this", "**never closed *nor this"),
        ("||a **b||c**", "<spl>a **b</spl>c**"),
        (r"\*no\* ¯\_(ツ)_/¯", "*no* ¯_(ツ)_/¯"),
        ("**** |||| ``", "**** |||| ``"),
        ("<b>no</b> &amp; \"q\"", '&lt;b&gt;no&lt;/b&gt; &amp;amp; "q"'),
        ("<t:99999999999999999>", "&lt;t:99999999999999999&gt;"),
        ("<@12345678901234567890123>", "&lt;@12345678901234567890123&gt;"),
        ("👨‍👩‍👧 **fett** 😀_i_", "👨‍👩‍👧 <b>fett</b> 😀<i>i</i>"),
    ],
)  # fmt: skip
def test_markdown_becomes_markup(text: str, markup: str) -> None:
    assert shown(text) == markup


@pytest.mark.parametrize(
    "piece",
    [
        "*",
        "[",
        "`",
        "<",
        "**a ",
        "`a``b```c",
        "> ",
        "\n> x",
        "||",
        "_a",
        "[a](https://",
        "```a\n> b",
        "<:",
        "</a",
        "~~\\",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    started = time.process_time()
    shown(text)
    assert time.process_time() - started < 5.0


@given(st.text(alphabet="*_~|`<>@#:[]()\\ \n>ab0/t!&", max_size=60))
@settings(max_examples=300, deadline=None)
def test_whatever_is_written_the_markup_reads_back_to_the_same_tree(text: str) -> None:
    nodes = read_markdown(text, Names())
    assert parse(render(nodes)) == nodes


async def test_links_to_discords_own_files_and_api_are_put_in_words(library: Library) -> None:
    text = (
        "https://cdn.discordapp.com/attachments/1/2/cat.png?ex=1&is=2&hm=3& "
        "[x](https://media.discordapp.net/attachments/1/2/dog.png?ex=9) `https://discord.com/api/webhooks/1/secret`"
    )
    markup = content(library, message(text))
    assert "hm=3" not in markup
    assert "secret" not in markup
    assert "discordapp" not in markup
    assert "cat.png" in markup
    assert "dog.png" in markup
    assert content(library, message("https://discord.com/channels/1/2/3")) == "https://discord.com/channels/1/2/3"


# --- files --------------------------------------------------------------------------------------------------------


async def test_attachments_stand_in_content_and_in_the_list_in_the_same_order(library: Library) -> None:
    fact = said(
        library,
        message(
            "look",
            attachments=[
                attachment("31", "cat.png", content_type="image/png", width=16, height=9, description='a "cat"'),
                attachment("32", "voice-message.ogg", content_type="audio/ogg", duration_secs=1.5, waveform="AAAA"),
                attachment("33", "clip.mp4", content_type="video/mp4"),
                attachment("34", "notes.txt", content_type="text/plain; charset=utf-8"),
                attachment("35", "photo.JPG"),
                attachment("36", "SPOILER_end.bin", content_type="no type\n"),
            ],
        ),
    )
    urls = [f"asset://{asset_id(discord_session(CHANNEL), 'discord', MESSAGE, str(n))}" for n in range(31, 37)]
    assert [file.item.url for file in fact.media] == urls
    assert fact.message.content == (
        f'look<img src="{urls[0]}" title="cat.png" alt="a &quot;cat&quot;" width="16" height="9"/>'
        f'<audio src="{urls[1]}" title="voice-message.ogg"/><video src="{urls[2]}" title="clip.mp4"/>'
        f'<file src="{urls[3]}" title="notes.txt"/><img src="{urls[4]}" title="photo.JPG"/>'
        f'<spl><file src="{urls[5]}" title="SPOILER_end.bin"/></spl>'
    )
    assert [file.item.media_type for file in fact.media] == [
        "image/*",
        "audio/ogg",
        "video/mp4",
        "text/plain; charset=utf-8",
        "image/*",
        "application/octet-stream",
    ]
    first = fact.media[0]
    assert (first.item.byte_length, first.item.width, first.item.height) == (68, 16, 9)
    assert (first.ref.attachment_id, first.ref.channel_id, first.declared.media_type) == ("31", CHANNEL, "image/png")
    declared = [file.declared.media_type for file in fact.media]
    assert declared[3:] == ["text/plain; charset=utf-8", None, None], "what was guessed from the name was not declared"


async def test_the_type_of_an_attachment_counts_in_capitals_too(library: Library) -> None:
    fact = said(library, message("", attachments=[attachment("31", "cat", content_type="IMAGE/PNG")]))
    assert fact.message.content.startswith("<img ")
    assert fact.media[0].item.media_type == "image/*"


async def test_a_link_of_the_platform_is_words_as_a_file_name_too(library: Library) -> None:
    name = "https://cdn.discordapp.com/1/cat.png?hm=SIG"
    items = [{"id": "41", "name": name, "format_type": 1}]
    fact = said(library, message("", attachments=[attachment("31", name)], sticker_items=items))
    assert "SIG" not in repr(fact)
    assert fact.media[0].item.filename == "[a file on Discord: cat.png]"


@pytest.mark.parametrize(
    ("name", "safe"),
    [("../../etc/x", "x"), ("\u202egpj.exe", "gpj.exe"), ("C:\\con.txt", "_con.txt"), ("a" * 300 + ".png", None)],
)
async def test_a_file_name_is_never_a_path(library: Library, name: str, safe: str | None) -> None:
    fact = said(library, message("", attachments=[attachment("31", name)]))
    kept = fact.media[0].item.filename
    assert kept is not None
    assert len(kept) <= 150
    assert safe is None or kept == safe


async def test_a_sticker_is_a_picture_with_its_name_and_lottie_is_a_file(library: Library) -> None:
    kinds = [("41", 1, "img"), ("42", 2, "img"), ("43", 3, "file"), ("44", 4, "img")]
    fact = said(
        library,
        message("", sticker_items=[{"id": n, "name": "Wave <3", "format_type": kind} for n, kind, _ in kinds]),
    )
    assert "Wave &lt;3" in fact.message.content
    assert [file.item.media_type for file in fact.media] == ["image/*", "image/*", "application/json", "image/*"]
    assert {file.declared.media_type for file in fact.media} == {None}
    assert fact.message.content.count("<img ") == 3


async def test_links_of_stickers_are_made_from_the_first_host_and_those_of_gifs_from_theirs(library: Library) -> None:
    items = [{"id": str(kind), "name": "wave", "format_type": kind} for kind in (1, 2, 3, 4)]
    parsed, _ = library.read(message("", sticker_items=items))
    real = ("cdn.discordapp.com", "media.discordapp.net")
    assert [url for _, url in links_of(parsed, real)] == [
        "https://cdn.discordapp.com/stickers/1.png",
        "https://cdn.discordapp.com/stickers/2.png",
        "https://cdn.discordapp.com/stickers/3.json",
        "https://media.discordapp.net/stickers/4.gif",
    ]
    assert dict(links_of(parsed, ("127.0.0.1:80",)))["4"] == "http://127.0.0.1:80/stickers/4.gif"
    assert dict(links_of(parsed, ("127.0.0.1.evil.example",)))["1"].startswith("https://")


# --- what has no text ---------------------------------------------------------------------------------------------


async def test_a_poll_shows_its_question_and_answers_and_votes_change_nothing(library: Library) -> None:
    poll = {
        "question": {"text": "Which film & when?"},
        "answers": [
            {"answer_id": 1, "poll_media": {"text": "Solaris", "emoji": {"id": None, "name": "🪐"}}},
            {"answer_id": 2, "poll_media": {"text": "Stalker", "emoji": {"id": "7", "name": "zone"}}},
        ],
        "expiry": "2026-11-02T19:00:00+00:00",
        "allow_multiselect": True,
        "layout_type": 1,
    }
    before = content(library, message("", poll=poll))
    assert plain_text(before) == "Poll (several answers): Which film & when?\n- 🪐 Solaris\n- :zone: Stalker"
    votes = {"is_finalized": True, "answer_counts": [{"id": 1, "count": 3, "me_voted": False}]}
    assert content(library, message("", poll=poll | {"results": votes})) == before


EMBED: Payload = {
    "type": "rich",
    "title": "Build <42>",
    "url": "https://ci.example.org/42",
    "description": "It **failed**",
    "author": {"name": "CI"},
    "fields": [{"name": "Branch", "value": "`main`", "inline": True}],
    "footer": {"text": "took 3 s"},
}


async def test_an_embed_of_a_webhook_is_read(library: Library) -> None:
    hook = message("", webhook_id="55", author=user("55", "CI", bot=True), member=..., embeds=[EMBED])
    assert content(library, hook) == (
        'CI\n<a href="https://ci.example.org/42"><b>Build &lt;42&gt;</b></a>\nIt <b>failed</b>\n'
        "<b>Branch</b>: <code>main</code>\ntook 3 s"
    )


async def test_the_preview_of_a_link_adds_nothing(library: Library) -> None:
    preview = EMBED | {"type": "link"}
    assert (
        content(library, message("see https://ci.example.org/42", embeds=[preview])) == "see https://ci.example.org/42"
    )
    robot = message("see https://x.org", author=user(JIRO, "Robot", bot=True), embeds=[preview])
    assert content(library, robot) == "see https://x.org"


async def test_a_message_of_nothing_but_components_can_be_read(library: Library) -> None:
    rows = [
        {"type": 17, "components": [{"type": 10, "content": "Pick **one**"}]},
        {
            "type": 1,
            "components": [
                {"type": 2, "style": 1, "label": "Yes", "custom_id": "y"},
                {"type": 2, "style": 5, "label": "More", "url": "https://x.org"},
            ],
        },
    ]
    payload = message("", author=user(JIRO, "Robot", bot=True), components=rows, flags=1 << 15)
    assert content(library, payload) == "Pick <b>one</b>\n[button: Yes]\n[button: More]"


@pytest.mark.parametrize("kind", [*range(70), 255])
async def test_every_type_of_message_can_be_read(library: Library, kind: int) -> None:
    parsed, _ = library.read(message("", type=kind))
    fact = convert.message_created(parsed, me=ME, veil=VEIL)
    assert plain_text(fact.message.content).strip()
    assert not mentions(fact.message.content)


@pytest.mark.parametrize(
    ("kind", "rest", "told"),
    [
        (7, {}, "Mona joined the server."),
        (6, {}, "Mona pinned a message to this channel."),
        (18, {"content": "plans & more"}, "Mona started a thread: plans &amp; more"),
        (1, {"mentions": [user(BOT, "Ishiki", bot=True)]}, "Mona added Ishiki."),
        (3, {"call": {"participants": [MONA], "ended_timestamp": None}}, "Mona started a call."),
        (8, {}, "Mona boosted the server."),
    ],
)
async def test_notices_are_told_in_neutral_words(library: Library, kind: int, rest: Payload, told: str) -> None:
    assert content(library, message("", type=kind) | rest) == told


async def test_an_empty_message_of_a_server_says_that_its_content_is_hidden(library: Library) -> None:
    parsed, _ = library.read(message(""))
    assert convert.is_hidden(parsed)
    assert content(library, message("")) == convert.HIDDEN
    direct, _ = library.read(message("", channel_id=DM, guild_id=..., member=...))
    assert not convert.is_hidden(direct)


# --- replies and forwards -----------------------------------------------------------------------------------------

REFERENCE: Payload = {"type": 0, "message_id": "1300000000000000000", "channel_id": CHANNEL, "guild_id": GUILD}


async def test_a_reply_quotes_with_content_and_author(library: Library) -> None:
    original = message("Thursday?", id=REFERENCE["message_id"], author=user(BOT, "Ishiki", bot=True), member=...)
    original["attachments"] = [attachment("31", "cat.png", content_type="image/png")]
    quote = created(library, message("no", type=19, message_reference=REFERENCE, referenced_message=original)).quote
    assert quote is not None
    assert (quote.id, quote.content) == (REFERENCE["message_id"], 'Thursday?<img title="cat.png"/>')
    assert quote.user is not None
    assert quote.user.id == BOT
    assert quote.channel is None


@pytest.mark.parametrize("rest", [{"referenced_message": None}, {}])
async def test_a_reply_to_what_is_gone_quotes_the_number_alone(library: Library, rest: Payload) -> None:
    quote = created(library, message("no", type=19, message_reference=REFERENCE) | rest).quote
    assert quote is not None
    assert (quote.id, quote.content, quote.user) == (REFERENCE["message_id"], None, None)


async def test_a_pin_is_no_reply(library: Library) -> None:
    assert created(library, message("", type=6, message_reference=REFERENCE)).quote is None


async def test_a_forward_shows_what_was_forwarded_and_names_who_forwarded(library: Library) -> None:
    snapshot = {
        "type": 0,
        "content": "the **plan**",
        "timestamp": "2026-10-31T10:00:00+00:00",
        "edited_timestamp": None,
        "flags": 0,
        "embeds": [],
        "mentions": [],
        "mention_roles": [],
        "attachments": [attachment("31", "plan.pdf", content_type="application/pdf")],
    }
    payload = message(
        "",
        flags=1 << 14,
        message_reference={"type": 1, "message_id": "13", "channel_id": "66", "guild_id": "67"},
        message_snapshots=[{"message": snapshot}],
    )
    fact = said(library, payload)
    url = fact.media[0].item.url
    assert fact.message.content == (f'<message forward>the <b>plan</b><file src="{url}" title="plan.pdf"/></message>')
    assert fact.message.user.id == MONA
    assert fact.message.quote is None
    assert fact.message.forward is not None
    assert fact.message.forward.channel is not None
    assert (fact.message.forward.channel.id, fact.message.forward.timestamp) == ("66", 1793440800000)
    assert fact.media[0].ref.message_id == MESSAGE


async def test_a_thread_begins_with_the_message_it_was_started_from(library: Library) -> None:
    original = message(f"<@{BOT}> shall we?", id="13")
    payload = message("", type=21, channel_id=THREAD, message_reference=REFERENCE, referenced_message=original)
    fact = created(library, payload)
    assert "shall we?" in fact.content
    assert fact.quote is None
    assert mentions(fact.content) == frozenset()


# --- edits and deletions ------------------------------------------------------------------------------------------


async def test_an_edit_bears_its_own_time_and_that_of_the_message(library: Library) -> None:
    payload = message("better", edited_timestamp="2026-11-01T19:05:00.500000+00:00")
    parsed, sent_at = library.read(payload, "MESSAGE_UPDATE")
    fact = convert.message_created(parsed, me=ME, veil=VEIL, sent_at=sent_at)
    assert (fact.edited_at, fact.message.timestamp) == (1793559900500, 1793559600123)


@pytest.mark.parametrize(
    "payload", [message("see https://x.org"), {"id": MESSAGE, "channel_id": CHANNEL, "embeds": []}]
)
async def test_an_update_that_edits_nothing_is_left_out(library: Library, payload: Payload) -> None:
    library.tell("MESSAGE_UPDATE", payload)
    assert library.heard.messages == []
    assert library.heard.unread == []


async def test_a_deletion_has_the_time_of_its_receipt_and_no_operator(library: Library) -> None:
    library.tell("MESSAGE_DELETE", {"id": MESSAGE, "channel_id": CHANNEL, "guild_id": GUILD})
    event = library.heard.deleted[0]
    (fact,) = convert.messages_deleted(event, [event.message_id], me=ME, now=5)
    assert (fact.message.message_id, fact.message.channel_id, fact.message.timestamp) == (MESSAGE, CHANNEL, 5)
    assert (fact.message.user_id, fact.message.operator_id) == (None, None)
    assert convert.session_of_deletion(event) == discord_session(CHANNEL)
    place = convert.visit_of_deletion(event, parent=None)
    assert (place.channel, place.guild, place.user, place.direct) == (CHANNEL, GUILD, None, False)


async def test_what_we_said_ourselves_is_our_own(library: Library) -> None:
    ours, _ = library.read(message(author=user(BOT, "Ishiki"), member=...))
    assert convert.is_own(ours, me=ME)
    theirs, _ = library.read(message())
    assert not convert.is_own(theirs, me=ME)


async def test_a_bulk_deletion_keeps_the_order_of_the_list(library: Library) -> None:
    ids = ["9", "1", "700", "30", "2"]
    library.tell("MESSAGE_DELETE_BULK", {"ids": ids, "channel_id": CHANNEL, "guild_id": GUILD})
    facts = convert.messages_deleted(*library.heard.bulks[0], me=ME, now=5)
    assert [fact.message.message_id for fact in facts] == ids


async def test_what_the_library_cannot_parse_is_told_and_the_next_one_is_read(library: Library) -> None:
    library.tell("MESSAGE_CREATE", {"id": "not a number", "content": "secret"})
    assert library.heard.unread == ["MESSAGE_CREATE"]
    library.heard.unread.clear()
    assert content(library, message("and on")) == "and on"
