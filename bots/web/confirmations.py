"""Asking people for leave and for answers, seeing what is open, and answering (contract sections 7 and 9)."""

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel

from bots.web.bodies import Ask, Confirm, Decision
from bots.web.errors import OF_ANY_BODY, needing_the_disk, refusals
from bots.web.guard import operator_only
from bots.web.once import Answer, Once
from bots.web.path import Known
from bots.web.sessions import IdempotencyKey
from core.confirmations.asking import Asking
from core.confirmations.desk import Desk
from core.confirmations.record import Answer as Answered
from core.confirmations.record import Person, Record
from core.errors import InvalidId, UnknownTask
from core.ids import SessionId, TaskHash, new_task_hash, task_hash

LONGEST_WAIT: Final = 60
OPERATOR: Final = Person(platform="http", id="operator", name="operator")

Task = Annotated[str, Path(alias="task_hash")]
Wait = Annotated[float, Query(ge=0, le=LONGEST_WAIT, allow_inf_nan=False, description="seconds")]


class Asked(BaseModel):
    """Names what was asked from now on."""

    task_hash: str


class Pending(BaseModel):
    """What is open, in the order in which it was asked."""

    pending: list[Record]


def confirmation_routes(desk: Desk, asking: Asking, once: Once, known: Known) -> APIRouter:
    routes = APIRouter(prefix="/v1/session/{sid}", tags=["confirmations"])
    asked = refusals(404, 409, *OF_ANY_BODY)

    @routes.post("/confirm", status_code=202, responses=asked)
    async def confirm(sid: str, wanted: Confirm, idempotency_key: IdempotencyKey = None) -> Asked:  # pyright: ignore[reportUnusedFunction] - the router keeps it
        """Ask for leave, in the chat where the session's work began.

        The same ``Idempotency-Key`` and body again get the first answer again, and nothing is asked twice.
        """
        return await _ask(asking, once, known(sid).id, wanted, idempotency_key)

    @routes.post("/ask", status_code=202, responses=asked)
    async def ask(sid: str, wanted: Ask, idempotency_key: IdempotencyKey = None) -> Asked:  # pyright: ignore[reportUnusedFunction] - as above
        """Ask questions; else as ``/confirm``."""
        return await _ask(asking, once, known(sid).id, wanted, idempotency_key)

    @routes.get("/pending", response_model_exclude_defaults=True, responses=refusals(404))
    async def pending(sid: str) -> Pending:  # pyright: ignore[reportUnusedFunction] - as above
        """What is open: asked by the session, or shown in its chat."""
        session = known(sid).id
        records = (record for record in desk.records() if record.is_open)
        return Pending(pending=[record for record in records if session in {record.session_id, record.deliver_to}])

    @routes.get("/pending/{task_hash}", response_model_exclude_defaults=True, responses=refusals(404))
    async def one(sid: str, task: Task, wait: Wait = 0.0) -> Record:  # pyright: ignore[reportUnusedFunction] - as above
        """One, open or decided; with ``wait`` as soon as it is decided, at the latest after so many seconds."""
        record = await _find(desk, known(sid).id, task)
        return await desk.decided(record.task_hash, wait)

    @routes.post(
        "/pending/{task_hash}",
        response_model_exclude_defaults=True,
        dependencies=[Depends(operator_only)],
        responses=refusals(404, 410, *OF_ANY_BODY),
    )
    async def answer(sid: str, task: Task, decision: Decision) -> Record:  # pyright: ignore[reportUnusedFunction] - as above
        """Answer with the operator's right: the first valid answer is the answer."""
        record = await _find(desk, known(sid).id, task)
        with needing_the_disk():
            if decision.choice is not None:
                return await desk.choose(record.task_hash, decision.choice, OPERATOR)
            given = [Answered(question=one.question, answer=one.answer) for one in decision.answers or ()]
            return await desk.answer(record.task_hash, given, OPERATOR)

    return routes


async def _ask(asking: Asking, once: Once, session: SessionId, wanted: Confirm | Ask, key: str | None) -> Asked:
    request = wanted.request(session)

    async def act(attempt: str) -> Answer:
        # The attempt's own number is the task hash: what a crash left open is found again, not asked twice.
        record = await asking.ask(request, TaskHash(attempt))
        return Answer(202, {"task_hash": record.task_hash})

    with needing_the_disk():
        if key is None:
            answer = await act(new_task_hash())
        else:
            answer = await once.answer(session, key, request.kind, wanted.canonical(), act)
    return Asked.model_validate(answer.body)


async def _find(desk: Desk, session: SessionId, task: str) -> Record:
    """The record of a path, if it is the session's own. Raises `UnknownTask`, also for what is no hash."""
    unknown = UnknownTask("there is no confirmation of that hash in this session")
    try:
        record = await desk.find(task_hash(task))
    except InvalidId:
        raise unknown from None
    if session not in {record.session_id, record.origin, record.deliver_to}:
        raise unknown
    return record
