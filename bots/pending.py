"""``ishiki pending`` and ``ishiki answer``: what people are asked, and their answer from the terminal."""

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from typing import Final, NoReturn

import typer

from bots import pending_sources, typed
from bots.commands import AnswerIt, Command, Reply, Revoke
from bots.control import send
from bots.diagnostics import configure
from bots.pending_sources import SHORTEST
from bots.printing import console, fail, output, print_json, print_line, print_table, span
from bots.settings import load
from bots.timeline import clock
from core.archive.decisions import AllowRule
from core.clock import now_ms
from core.confirmations.life import check_open
from core.confirmations.record import Record
from core.confirmations.words import shown_args
from core.content import for_terminal
from core.errors import AlreadyDecided, InvalidAnswer

_WRONG_USAGE: Final = frozenset({"invalid_request", "invalid_answer"})
_OPEN: Final = ("hash", "session", "kind", "what is asked", "who may answer", "age", "expires in", "where it stands")
_RULES: Final = ("number", "session", "tool", "arguments (SHA-256)", "granted by", "granted at")


def show(session: str | None, *, as_json: bool, rules: bool, revoke: int | None) -> None:
    """What is open, of all sessions or of one; or the rules; or one rule, which is ended."""
    with output():
        folder = pending_sources.data_folder()
        among = pending_sources.sessions(folder, session)
        if rules or revoke is not None:
            # The number is that of the whole list, whichever session is asked for.
            numbered = enumerate(pending_sources.rules(folder), 1)
            chosen = [(number, rule) for number, rule in numbered if session is None or rule.session_id in among]
            if revoke is None:
                _print_rules(chosen, as_json=as_json)
            else:
                _revoke(revoke, dict(chosen), as_json=as_json)
            return
        records, unreadable = pending_sources.read(folder, among)
        _print_open(records, as_json=as_json)
        if unreadable:
            raise typer.Exit(1)


def answer(task: str, words: Sequence[str], *, as_json: bool) -> None:
    """Answer with the operator's right. ``task`` may be the beginning of a hash; without ``words`` show what fits."""
    with output():
        record = pending_sources.find(pending_sources.data_folder(), task)
        try:
            check_open(record, now_ms())
            said = typed.read(record, words)
        except AlreadyDecided as error:
            _fail_decided(str(error))
        except InvalidAnswer as error:
            if not words and not as_json:
                _print_offered(record)
            fail(str(error), 2)
        command = (
            AnswerIt(task_hash=record.task_hash, choice=said)
            if isinstance(said, str)
            else AnswerIt(task_hash=record.task_hash, answers=said)
        )
        reply, by_owner = _sent(command)
        decided = reply.record or record
        if as_json:
            print_json(decided.document())
            return
        later = "" if by_owner else "; `ishiki run` hands it on at its next start"
        print_line(f"{decided.task_hash} is {decided.status}{later}")


def _revoke(number: int, rules: dict[int, AllowRule], *, as_json: bool) -> None:
    """End exactly the rule that stands under that number now, whatever becomes of the list meanwhile, and show it."""
    rule = rules.get(number)
    if rule is None:
        fail(f"there is no rule {number} there; `ishiki pending --rules` lists them", 1)
    _sent(Revoke(session_id=rule.session_id, tool=rule.tool, args_hash=rule.args_hash, granted_by=rule.granted_by))
    if not as_json:
        print_line("revoked, so that it will be asked again:")
    _print_rules([(number, rule)], as_json=as_json)


def _sent(command: Command) -> tuple[Reply, bool]:
    """What came of a command, and whether the folder's owner did it. Ends with code 1 or 2 where it was refused."""
    settings = load()
    configure("warning", settings.ishiki_log_format)
    reply, by_owner = asyncio.run(send(settings.ishiki_data_dir, command))
    if reply.code == "decided":
        _fail_decided(reply.message)
    if not reply.ok:
        fail(for_terminal(reply.message), 2 if reply.code in _WRONG_USAGE else 1)
    return reply, by_owner


def _fail_decided(why: str) -> NoReturn:
    fail(f"{for_terminal(why)}; `ishiki pending` lists what is open", 1)


def _print_open(records: Sequence[Record], *, as_json: bool) -> None:
    """Those that are open; on a terminal with as much of their hash as `answer` needs."""
    now = now_ms()
    waiting = [record for record in records if record.is_open]
    if as_json:
        for record in waiting:
            print_json(record.document())
        return
    beginnings = Counter(record.task_hash[:SHORTEST] for record in records)
    rows = [
        [
            record.task_hash[:SHORTEST]
            if console.is_terminal and beginnings[record.task_hash[:SHORTEST]] == 1
            else record.task_hash,
            record.session_id,
            record.kind,
            _asked(record),
            _who(record),
            span(now - record.created_at),
            span(record.expires_at - now),
            _place(record),
        ]
        for record in waiting
    ]
    print_table(_OPEN, rows, "nothing is asked")


def _print_rules(rules: Sequence[tuple[int, AllowRule]], *, as_json: bool) -> None:
    if as_json:
        for number, rule in rules:
            print_json({"number": number, **rule._asdict()})
        return
    rows = [
        [str(number), rule.session_id, rule.tool, rule.args_hash, rule.granted_by, clock(rule.granted_at)]
        for number, rule in rules
    ]
    print_table(_RULES, rows, "nothing is allowed for ever")


def _print_offered(record: Record) -> None:
    """What is asked, and what can be typed."""
    print_line(f"{record.task_hash}  {record.kind}  {record.session_id}", "bold")
    if record.tool is not None:
        print_line(f"May I use {for_terminal(record.tool)}?")
    for text in filter(None, (record.text, shown_args(record), record.file)):
        for line in for_terminal(text, multiline=True).split("\n"):
            print_line(f"    {line}")
    for line in typed.offered(record):
        print_line(line)


def _asked(record: Record) -> str:
    """What is asked, in a line: the tool and what it would get, or the question that is next."""
    if record.kind == "ask":
        question = record.questions[record.current].question
        return f"({record.current + 1}/{len(record.questions)}) {question}"
    args = (
        record.args
        if isinstance(record.args, str) or record.args is None
        else json.dumps(record.args, ensure_ascii=False)
    )
    return " ".join(part for part in (record.tool, args, record.text) if part)


def _who(record: Record) -> str:
    if record.approvers == "anyone":
        return "anyone there"
    if record.approvers == "requester" and record.requester is not None:
        name = f"{record.requester.name} " if record.requester.name else ""
        return f"{name}({record.requester.id}), admins"
    return "admins"


def _place(record: Record) -> str:
    """Where the prompt stands, or why nowhere."""
    if record.error is not None:
        return f"not shown: {record.error.message}"
    if record.prompt is None:
        return "not shown yet"
    topic = f" topic {record.prompt.thread_id}" if record.prompt.thread_id is not None else ""
    return f"{record.prompt.platform} {record.prompt.channel_id}{topic}"
