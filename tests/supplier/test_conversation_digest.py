import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from pytest_regcase.supplier.conversation_digest import ConversationDigests
from pytest_regcase.supplier.protocol import Call, Message
from tests.supplier.requests import got, said, user

texts = st.sampled_from(["", "a", "ü\ud800", "\n, "])
calls = st.builds(Call, st.none() | texts, texts, texts)
messages = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "tool"]),
    texts,
    st.lists(calls, max_size=2).map(tuple),
    st.none() | texts,
    st.none(),
)
conversations = st.lists(messages, max_size=6).map(tuple)


def fresh(*asked: Message) -> str:
    return ConversationDigests().of(asked)


def as_one_document(asked: tuple[Message, ...]) -> str:
    rows = [
        [
            each.role,
            each.text,
            [[call.id, call.name, call.arguments] for call in each.tool_calls],
            each.tool_call_id,
        ]
        for each in asked
    ]
    return "sha256:" + hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def test_everything_that_was_said_and_its_order_is_in_the_digest() -> None:
    asked = (user(), said("c1"), got("c1"))
    others = [
        (),
        (user(),),
        (user(), said("c1")),
        (said("c1"), user(), got("c1")),
        (user("Fix it!"), said("c1"), got("c1")),
        (user(), said("c2"), got("c1")),
        (user(), said("c1", name="sh"), got("c1")),
        (user(), said("c1"), got("c2")),
        (user(), said("c1"), got("c1", "no")),
    ]
    assert len({fresh(*each) for each in [asked, *others]}) == 1 + len(others)


@given(before=st.lists(conversations, max_size=4), asked=conversations)
def test_what_was_asked_before_makes_no_difference(
    before: list[tuple[Message, ...]], asked: tuple[Message, ...]
) -> None:
    digests = ConversationDigests()
    for each in before:
        digests.of(each)
    assert digests.of(asked) == as_one_document(asked)


@given(asked=conversations)
def test_a_conversation_that_grows_and_is_asked_again(asked: tuple[Message, ...]) -> None:
    digests = ConversationDigests()
    for end in range(len(asked) + 1):
        assert digests.of(asked[:end]) == as_one_document(asked[:end])
        assert digests.of(asked[:end]) == as_one_document(asked[:end])
