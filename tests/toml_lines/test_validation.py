from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field, ValidationError

from pytest_regcase.errors import FileError
from pytest_regcase.records.base import Many, Record
from pytest_regcase.toml_lines import complaint, parse_toml, validate


class Inner(Record):
    number: int = Field(ge=1)
    word: Literal["one", "two"] = "one"


class Outer(Record):
    name: str
    spelt: int = Field(default=1, alias="in-files")
    inner: Inner | None = None
    many: Many[Inner] = ()
    by_name: dict[str, Inner] = Field(default_factory=dict)
    at: Literal["end"] | int | dict[Literal["request"], int] = "end"
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    texts: Many[str] = ()


def problems(text: str, **more: object) -> list[str]:
    with pytest.raises(FileError) as caught:
        validate(Outer, parse_toml(Path("f"), text.encode()), **more)  # type: ignore[arg-type]
    return caught.value.problems


def test_a_right_table_becomes_the_model() -> None:
    made = validate(
        Outer, parse_toml(Path("f"), b'[tool.x]\nname = "a"\nmany = [{ number = 2 }]\n'), ("tool", "x")
    )
    assert made == Outer(name="a", many=(Inner(number=2),))


def test_a_table_that_is_not_there_is_an_empty_one() -> None:
    assert problems("", table=("tool", "x")) == ['f: "name" is missing in [tool.x]; it is required']


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "nam = 1",
            [
                'f:1: unknown key "nam"; did you mean "name"? It is required.',
            ],
        ),
        (
            'name = "a"\nzzz = 1',
            [
                'f:2: unknown key "zzz"; allowed: name, in-files, inner, many, by_name, at, share, texts',
            ],
        ),
        (
            'name = "a"\nspelt = 1',
            [
                'f:2: unknown key "spelt"; allowed: name, in-files, inner, many, by_name, at, share, texts',
            ],
        ),
        (
            'name = "a"\n[inner]\nnumber = 0',
            [
                "f:3: inner.number = 0; allowed: 1 or more",
            ],
        ),
        (
            'name = "a"\n[inner]\nnumber = "1"',
            [
                'f:3: inner.number = "1"; allowed: a whole number',
            ],
        ),
        (
            'name = "a"\n[inner]\nnumbr = 1',
            [
                'f:3: unknown key "numbr" in [inner]; did you mean "number"? It is required.',
            ],
        ),
        (
            'name = "a"\n[inner]\nnumber = 1\nshare = 0.2',
            [
                'f:4: unknown key "share" in [inner]; it belongs above the first [table] header',
            ],
        ),
        (
            'name = "a"\nnumber = 1',
            [
                'f:2: unknown key "number"; it belongs in [inner]',
            ],
        ),
        (
            'name = "a"\n[[many]]\nnumber = 1\n[[many]]\nword = "tow"',
            [
                'f:4: "number" is missing in [many[2]]; it is required',
                'f:5: many[2].word = "tow"; allowed: "one" or "two"',
            ],
        ),
        (
            'name = "a"\n[by_name.x]\nword = "two"\nnumbers = 1',
            [
                'f:4: unknown key "numbers" in [by_name.x]; did you mean "number"? It is required.',
            ],
        ),
        (
            'name = "a"\nat = true',
            [
                'f:2: at = true; allowed: "end" or a whole number or a table',
            ],
        ),
        (
            'name = "a"\nat = { requests = 1 }',
            [
                'f:2: at = a table; allowed: "end" or a whole number or a table with the key "request"',
            ],
        ),
        (
            'name = "a"\nshare = 1',
            [
                "f:2: share = 1; allowed: less than 1",
            ],
        ),
        (
            'name = "a"\ntexts = "x"',
            [
                'f:2: texts = "x"; allowed: an array [...]',
            ],
        ),
        (
            'name = "a"\ntexts = ["x",\n 1]',
            [
                "f:3: texts[2] = 1; allowed: a string in quotes",
            ],
        ),
        (
            'name = "a"\ninner = [1]',
            [
                "f:2: inner = an array; allowed: a table",
            ],
        ),
        (
            "name = [1]",
            [
                "f:1: name = an array; allowed: a string in quotes",
            ],
        ),
        (
            "name = 2026-01-01",
            [
                "f:1: name = 2026-01-01; allowed: a string in quotes",
            ],
        ),
    ],
)
def test_each_complaint_reads_as_a_sentence_with_its_line(text: str, says: list[str]) -> None:
    assert problems(text) == says


def test_a_long_value_is_cut() -> None:
    (problem,) = problems(f'name = "a"\nshare = "{"x" * 500}"')
    assert len(problem) < 120


def test_unknown_keys_come_first_and_then_the_lines_in_order() -> None:
    text = 'share = 2\nname = 1\nzzz = 1\n[inner]\nword = "x"\n'
    assert [each.split(":")[1] for each in problems(text)] == ["3", "1", "2", "4", "5"]


def test_several_missing_keys_of_one_table_are_one_line() -> None:
    class Two(Record):
        a: int
        b: int

    with pytest.raises(FileError, match=r'^f: "a", "b" are missing; they are required$'):
        validate(Two, parse_toml(Path("f"), b""))


def test_a_file_may_have_to_hold_more_than_the_model_asks_for() -> None:
    required = (("inner",), ("inner", "word"))
    assert problems('name = "a"', required=required) == ['f: "inner" is missing; it is required']
    assert problems('name = "a"\n[inner]\nnumber = 1', required=required) == [
        'f:2: "word" is missing in [inner]; it is required'
    ]


def test_a_table_must_be_one() -> None:
    assert problems("tool = 3", table=("tool",)) == ["f:1: tool is 3; allowed: a table"]


def test_a_complaint_about_values_from_elsewhere_has_no_line() -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate({"name": "a", "inner": {"number": 0}})
    assert complaint(Outer, caught.value) == "inner.number = 0; allowed: 1 or more"
