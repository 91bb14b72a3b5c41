"""What a person typed as the answer to a confirmation or a question. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from core.confirmations.record import Answer, Choice, Question, Record
from core.content import for_terminal
from core.errors import InvalidAnswer

STOP: Final = "stop"


def read(record: Record, words: Sequence[str]) -> Choice | tuple[Answer, ...]:
    """A choice, or the answers to all questions. Raises `InvalidAnswer` with a sentence that says what is wanted.

    `STOP` alone ends a question too; an option of that name is chosen by its number.
    """
    if not words:
        raise InvalidAnswer(f"no answer was given; {_wanted(record)}")
    if any("\ud800" <= character <= "\udfff" for word in words for character in word):
        raise InvalidAnswer("an answer is no text; type it in the terminal's own encoding, UTF-8")
    if record.kind == "confirm":
        return _choice(record, words)
    if [word.strip().lower() for word in words] == [STOP]:
        return STOP
    if len(words) != len(record.questions):
        fewness = "too few" if len(words) < len(record.questions) else "too many"
        raise InvalidAnswer(f"{_counted(len(words), 'answer')} given, which is {fewness}; {_wanted(record)}")
    return tuple(
        Answer(question=question.question, answer=_answer(question, word))
        for question, word in zip(record.questions, words, strict=True)
    )


def offered(record: Record) -> Iterator[str]:
    """What is asked and what can be typed, in lines that a terminal may be given."""
    if record.kind == "confirm":
        yield f"choices: {' '.join(record.choices)}"
        return
    for number, question in enumerate(record.questions, 1):
        yield f"({number}/{len(record.questions)}) {for_terminal(question.question)}"
        if question.detail:
            yield from (f"    {line}" for line in for_terminal(question.detail, multiline=True).split("\n"))
        yield f"    {_how(question)}"
        for place, option in enumerate(question.options, 1):
            yield f"    {place:3}  {for_terminal(option)}"
    yield f"or {STOP}, alone"


def _choice(record: Record, words: Sequence[str]) -> Choice:
    word = words[0].strip().lower()
    if len(words) > 1 or word not in record.choices:
        raise InvalidAnswer(f"that is no choice here; {_wanted(record)}")
    return word


def _answer(question: Question, word: str) -> str | tuple[str, ...]:
    if not question.options:
        if not word.strip():
            raise InvalidAnswer(f"an answer in your own words is wanted to {_shown(question)}")
        return word.rstrip("\n")
    if not question.multi_select:
        return question.options[_option(question, word)]
    # A label may hold a comma itself.
    words = [word] if word.strip() in question.options else word.split(",")
    return tuple(question.options[number] for number in sorted({_option(question, piece) for piece in words}))


def _option(question: Question, word: str) -> int:
    """The index of an option, given by its label or by its number from 1; a label that is a number goes before it."""
    word = word.strip()
    if word in question.options:
        return question.options.index(word)
    if word.isascii() and word.isdecimal() and 1 <= int(word[:9]) <= len(question.options):
        return int(word) - 1
    raise InvalidAnswer(
        f"{for_terminal(word)!r} is no option of {_shown(question)}; give a number from 1 to {len(question.options)}, "
        "or the option's own words"
    )


def _how(question: Question) -> str:
    if not question.options:
        return "in your own words"
    return "one or more of these, with commas" if question.multi_select else "one of these"


def _wanted(record: Record) -> str:
    if record.kind == "confirm":
        return f"give one of {', '.join(record.choices)}"
    if len(record.questions) == 1:
        return f"give one answer, in quotes where it has blanks, or {STOP}"
    return f"give {_counted(len(record.questions), 'answer')}, one for each question, or {STOP} alone"


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _shown(question: Question) -> str:
    return repr(for_terminal(question.question[:100]))
