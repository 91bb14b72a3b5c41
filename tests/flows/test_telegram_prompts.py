"""Asking people on Telegram: the real library against the loopback server, from the request to the outcome."""

from collections.abc import AsyncIterator

import pytest

from bots.sandbox.telegram import Chat, Message, Person, TelegramSandbox
from core.confirmations.asking import Origin, Request
from core.confirmations.record import Person as Somebody
from core.confirmations.record import Question
from core.ids import ThreadId, telegram_session
from tests.conftest import House, Until
from tests.fakes import FakeRuntime
from tests.flows.telegram_house import Door, door_on, session_of
from tests.flows.test_discord_prompts import FullFolder, SlowFolder


@pytest.fixture
async def sandbox() -> AsyncIterator[TelegramSandbox]:
    async with TelegramSandbox() as telegram:
        yield telegram


@pytest.fixture
def mona(sandbox: TelegramSandbox) -> Person:
    return sandbox.user("Mona")


@pytest.fixture
def jiro(sandbox: TelegramSandbox) -> Person:
    return sandbox.user("Jiro")


@pytest.fixture
def group(sandbox: TelegramSandbox, mona: Person, jiro: Person) -> Chat:
    return sandbox.group("Film club", [mona, jiro])


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime()


@pytest.fixture
async def door(sandbox: TelegramSandbox, house: House, runtime: FakeRuntime) -> AsyncIterator[Door]:
    async with door_on(sandbox, house, runtime=runtime) as opened:
        yield opened


def leave_in(chat: Chat, mona: Person, **rest: object) -> Request:
    members: dict[str, object] = {
        "session": session_of(chat),
        "kind": "confirm",
        "tool": "write_file",
        "args": {"path": "notes.md"},
        "choices": ("yes", "no"),
        "requester": str(mona.id),
    }
    return Request(**(members | rest))  # pyright: ignore[reportArgumentType] - a builder takes what it is given


def question_in(chat: Chat, mona: Person, *questions: Question) -> Request:
    return Request(session_of(chat), "ask", questions=questions, requester=str(mona.id))


def ours(chat: Chat) -> list[Message]:
    return [message for message in chat.messages.values() if message.by_bot and not message.deleted]


async def shown(chat: Chat, until: Until, count: int = 1) -> Message:
    await until(lambda: len(ours(chat)) == count)
    return ours(chat)[-1]


async def test_leave_is_asked_with_a_button_in_each_row_and_the_outcome_takes_their_place(
    door: Door, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    await door.asked.ask(leave_in(group, mona, choices=("yes", "always", "turn", "no", "stop")))
    prompt = await shown(group, until)
    assert "write_file" in prompt.text
    rows = prompt.payload["reply_markup"]["inline_keyboard"]
    assert [len(row) for row in rows] == [1] * 5
    assert all(len(row[0]["callback_data"].encode()) <= 64 for row in rows)
    answer = await mona.press(prompt, "Yes")
    assert answer is not None
    assert not answer.show_alert
    await until(lambda: runtime.resolved and not prompt.buttons)
    assert "Approved by Mona" in prompt.text
    assert (runtime.resolved[0].choice, runtime.resolved[0].by) == (
        "yes",
        runtime.resolved[0].requester and runtime.resolved[0].requester.model_copy(update={"name": "Mona"}),
    )


async def test_only_who_may_answers_and_others_are_told_alone(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, jiro: Person, until: Until
) -> None:
    record = await door.asked.ask(leave_in(group, mona))
    prompt = await shown(group, until)
    for stranger in (jiro, sandbox.user("Robot", is_bot=True)):
        answer = await stranger.press(prompt, "Yes")
        assert answer is not None
        assert answer.show_alert
    assert (await door.asked.desk.find(record.task_hash)).is_open
    assert prompt.buttons


async def test_a_press_is_answered_early_however_long_the_disk_takes(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    folder = SlowFolder(house.sessions.folder)
    async with door_on(sandbox, house, runtime=runtime, folder=folder) as door:
        await door.asked.ask(leave_in(group, mona))
        prompt = await shown(group, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        folder.seconds = 3.0
        assert await mona.press(prompt, "Yes", within=2.0) is not None
        assert not runtime.resolved
        await until(lambda: runtime.resolved)
        folder.seconds = 0.0


async def test_when_the_disk_refuses_nothing_is_decided_and_the_presser_is_told(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    folder = FullFolder(house.sessions.folder)
    async with door_on(sandbox, house, runtime=runtime, folder=folder) as door:
        record = await door.asked.ask(leave_in(group, mona))
        prompt = await shown(group, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        folder.full = True
        answer = await mona.press(prompt, "Yes")
        assert answer is not None
        assert "nothing is decided" in (answer.text or "")
        folder.full = False
        assert (await door.asked.desk.find(record.task_hash)).is_open
        assert await mona.press(prompt, "Yes") is not None
        await until(lambda: runtime.resolved)


async def test_a_press_counts_though_its_acknowledgement_fails_and_though_its_message_is_out_of_reach(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    await door.asked.ask(leave_in(group, mona))
    prompt = await shown(group, until)
    sandbox.fail("answerCallbackQuery", 400, description="Bad Request: query is too old")
    await mona.press_unanswered(prompt, "Yes")
    await until(lambda: runtime.resolved)
    await door.asked.ask(leave_in(group, mona))
    second = await shown(group, until, 2)
    await mona.delete(second)
    await mona.press_unanswered(second, "No")
    await until(lambda: len(runtime.resolved) == 2)
    assert [record.status for record in runtime.resolved] == ["approved", "denied"]


async def test_the_same_button_from_another_chat_decides_nothing(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    record = await door.asked.ask(leave_in(group, mona))
    prompt = await shown(group, until)
    elsewhere = sandbox.supergroup("Other club", [mona])
    data = prompt.buttons[0]["callback_data"]
    copy = await mona.say(elsewhere, "copied")
    copy.payload["reply_markup"] = {"inline_keyboard": [[{"text": "Yes", "callback_data": data}]]}
    answer = await mona.press(copy, "Yes")
    assert answer is not None
    assert "another chat" in (answer.text or "")
    assert (await door.asked.desk.find(record.task_hash)).is_open


async def test_several_are_ticked_and_taken_with_done_also_over_a_restart(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    question = Question(question="Which?", options=("red", "green", "blue"), multi_select=True)
    async with door_on(sandbox, house) as door:
        await door.asked.ask(question_in(group, mona, question))
        prompt = await shown(group, until)
        assert [one["text"] for one in prompt.buttons] == ["⬜ red", "⬜ green", "⬜ blue", "Done"]
        refused = await mona.press(prompt, "Done")
        assert refused is not None
        assert "at least one" in (refused.text or "")
        for label in ("⬜ blue", "⬜ green", "✅ green"):
            await until(lambda label=label: label in [one["text"] for one in prompt.buttons])
            await mona.press(prompt, label)
        await until(lambda: [one["text"] for one in prompt.buttons][:3] == ["⬜ red", "⬜ green", "✅ blue"])
    await house.reopen()
    async with door_on(sandbox, house, runtime=runtime):
        await mona.press(prompt, "⬜ red")
        await mona.press(prompt, "Done")
        await until(lambda: runtime.resolved and not prompt.buttons)
        assert runtime.resolved[0].answers[0].answer == ("red", "blue")
        assert len(ours(group)) == 1


async def test_only_a_reply_to_the_question_by_who_may_answer_is_the_answer(
    door: Door, group: Chat, mona: Person, jiro: Person, runtime: FakeRuntime, until: Until
) -> None:
    await door.asked.ask(
        question_in(group, mona, Question(question="What shall it be called?"), Question(question="And why?"))
    )
    prompt = await shown(group, until)
    assert prompt.sent_markup is not None
    assert prompt.sent_markup["force_reply"]
    await mona.say(group, "lunch.md")
    await jiro.say(group, "jiro.md", reply_to=prompt)
    await mona.say(group, "minutes.md", reply_to=prompt)
    await until(lambda: len(ours(group)) >= 3)
    second = ours(group)[-1]
    assert "(2/2) And why?" in second.text
    await mona.say(group, "because", reply_to=second)
    await until(lambda: runtime.resolved)
    assert [answer.answer for answer in runtime.resolved[0].answers] == ["minutes.md", "because"]
    assert door.texts(group) == ["lunch.md", "jiro.md", "minutes.md", "because"]
    for created in door.created(group):
        is_answer = await door.asked.desk.is_answer(session_of(group), created)
        assert is_answer == (created.content in {"minutes.md", "because"})


async def test_a_prompt_that_is_gone_is_posted_again(
    sandbox: TelegramSandbox, house: House, group: Chat, mona: Person, runtime: FakeRuntime, until: Until
) -> None:
    async with door_on(sandbox, house) as door:
        await door.asked.ask(
            question_in(group, mona, Question(question="Which?", options=("a", "b"), multi_select=True))
        )
        prompt = await shown(group, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        await mona.delete(prompt)
        await mona.press(prompt, "⬜ a")
        again = await shown(group, until)
        assert [one["text"] for one in again.buttons] == ["✅ a", "⬜ b", "Done"]

        def is_noted() -> bool:
            noted = door.asked.desk.records()[0].prompt
            return noted is not None and str(again.id) in noted.message_ids

        await until(is_noted)
        await mona.delete(again)
    await house.reopen()
    async with door_on(sandbox, house, runtime=runtime):
        last = await shown(group, until)
        await mona.press(last, "Done")
        await until(lambda: runtime.resolved)
        assert runtime.resolved[0].answers[0].answer == ("a",)


async def test_a_prompt_stands_in_its_topic_or_marked_in_the_chat_where_the_topic_is_gone(
    door: Door, sandbox: TelegramSandbox, mona: Person, until: Until
) -> None:
    forum = sandbox.forum("Film club", [mona])
    topic = await mona.create_topic(forum, "snacks")
    await door.asked.ask(leave_in(forum, mona, thread=ThreadId(str(topic.id))))
    prompt = await shown(forum, until)
    assert prompt.payload["message_thread_id"] == topic.id
    await mona.press(prompt, "Yes")
    gone = await mona.create_topic(forum, "drinks")
    await mona.delete_topic(forum, gone)
    await door.asked.ask(leave_in(forum, mona, thread=ThreadId(str(gone.id))))
    prompt = await shown(forum, until, 2)
    assert "topic is gone" in prompt.text
    await mona.press(prompt, "Yes")
    await until(lambda: not prompt.buttons)


@pytest.mark.parametrize(("old_notice", "new_notice"), [(True, True), (True, False), (False, True), (False, False)])
async def test_a_group_that_becomes_a_supergroup_takes_its_question_and_its_rule_along(
    sandbox: TelegramSandbox,
    house: House,
    group: Chat,
    mona: Person,
    runtime: FakeRuntime,
    until: Until,
    old_notice: bool,
    new_notice: bool,
) -> None:
    async with door_on(sandbox, house, runtime=runtime, allow=str(group.id)) as door:
        await mona.say(group, "hello")
        await until(lambda: door.created(group))
        record = await door.asked.ask(leave_in(group, mona))
        await shown(group, until)
        await until(lambda: door.asked.desk.records()[0].prompt)
        new = await sandbox.migrate(group, mona, old_notice=old_notice, new_notice=new_notice)
        if not old_notice and not new_notice:
            # Nobody told: it is learnt when something is sent there.
            await door.asked.ask(leave_in(group, mona))
            await door.asked.desk.choose(record.task_hash, "no", Somebody(platform="cli", id="operator"))
            moved = await shown(new, until)
        else:
            moved = await shown(new, until)
            assert (await door.asked.desk.find(record.task_hash)).deliver_to == session_of(new)
        await mona.press(moved, "Yes")
        await until(lambda: runtime.resolved and not moved.buttons)
        assert door.asked.lineage.current(session_of(group)) == session_of(new)
        await mona.say(new, "still let in")
        await until(lambda: "still let in" in door.texts(new))
        assert len(ours(new)) == 1
    await house.reopen()
    async with door_on(sandbox, house, allow=str(group.id)) as door:
        await mona.say(new, "and after a restart")
        await until(lambda: "and after a restart" in door.texts(new))
        assert door.asked.lineage.current(session_of(group)) == session_of(new)


async def test_a_retraction_in_a_business_chat_withdraws_and_only_admins_answer_there(
    sandbox: TelegramSandbox, house: House, mona: Person, jiro: Person, runtime: FakeRuntime, until: Until
) -> None:
    connection = await mona.connect_business()
    chat = jiro.business_chat(connection)
    async with door_on(sandbox, house, runtime=runtime, admins=[mona.id]) as door:
        cause = await jiro.say(chat, "send me the invoice")
        await until(lambda: door.created(chat))
        entry = next(house.sessions.of(session_of(chat)).read()).entry
        door.asked.causes.origin = Origin(entry.id, door.created(chat)[0])
        turn = "e061c676-0701-4e5c-b2c8-565cf9462c91"
        record = await door.asked.ask(leave_in(chat, mona, requester=None, turn=turn))
        assert record.approvers == "admins"
        prompt = await shown(chat, until)
        answer = await jiro.press(prompt, "Yes")
        assert answer is not None
        assert answer.show_alert
        await jiro.delete(cause)
        await until(lambda: runtime.resolved)
        assert runtime.resolved[0].withdrawn
        await until(lambda: "Withdrawn" in prompt.text)
        direct = telegram_session(chat.id)
        assert not house.sessions.exists(direct)


async def test_what_is_asked_fits_and_is_read_as_text(
    door: Door, sandbox: TelegramSandbox, group: Chat, mona: Person, until: Until
) -> None:
    hostile = "<b>&lt;</b> @everyone </code> [x](tg://user?id=1) 👩‍👩‍👧 " * 300
    await door.asked.ask(leave_in(group, mona, args={"text": hostile}, text="<b>&lt;</b>" * 300))
    await until(lambda: len(ours(group)) == 2)
    prompt, file = ours(group)
    assert file.payload["document"]["file_name"] == "request.json"
    assert "<b>&lt;</b>" in prompt.text
    assert "cut" in prompt.text
    assert len(prompt.text.encode("utf-16-le")) // 2 <= 4096
    marked = {entity["type"] for entity in prompt.payload["entities"]}
    assert marked <= {"bold", "code", "pre", "italic", "bot_command"}  # the last is what Telegram makes of "</"
