from pytest_regcase.supplier.kept_replies import KeptReplies, as_it_came
from pytest_regcase.supplier.protocol import Call, Message, ModelRequest, Refusal
from tests.supplier.requests import got, request, user

SYSTEM = Message("system", "Be brief.")
CALL = Call("c1", "bash", "{}")


def keeping(*messages: Message, continues: str | None = None) -> ModelRequest:
    return request(*messages)._replace(kept=True, continues=continues)


def whole(kept: KeptReplies, asked: ModelRequest) -> ModelRequest:
    found = kept.whole(asked)
    assert isinstance(found, ModelRequest)
    return found


def test_a_request_that_goes_on_from_a_reply_holds_the_whole_conversation() -> None:
    kept = KeptReplies()
    first = keeping(SYSTEM, user())
    kept.keep("r1", first, "Looking.", (CALL,))
    second = whole(kept, keeping(SYSTEM, got("c1"), continues="r1"))
    said = Message("assistant", "Looking.", (CALL,))
    assert second.messages == (SYSTEM, user(), said, got("c1"))
    assert second.continues is None
    kept.keep("r2", second, "Done.", ())
    third = whole(kept, keeping(user("More."), continues="r2"))
    # Without instructions of its own it still begins as the conversation did.
    assert third.messages == (SYSTEM, user(), said, got("c1"), Message("assistant", "Done."), user("More."))


def test_a_named_item_is_what_the_reply_said() -> None:
    kept = KeptReplies()
    kept.keep("r1", keeping(user()), None, (CALL,))
    named = keeping(user(), Message("assistant", "", stands_for="r1"), got("c1"))
    assert whole(kept, named).messages == (user(), Message("assistant", "", (CALL,)), got("c1"))
    assert as_it_came(named).messages == (user(), got("c1"))


def test_what_was_not_kept_cannot_be_named() -> None:
    kept = KeptReplies()
    kept.keep("r1", request(user()), "not to be kept", ())
    for asked, status, slug in (
        (keeping(user(), continues="r1"), 400, "previous_not_found"),
        (keeping(user(), Message("assistant", "", stands_for="r1")), 404, "item_not_found"),
    ):
        refused = kept.whole(asked)
        assert isinstance(refused, Refusal)
        assert (refused.status, refused.slug) == (status, slug)
        assert "'r1'" in (refused.message or "")


def test_only_the_latest_replies_are_kept() -> None:
    kept = KeptReplies()
    for number in range(200):
        kept.keep(f"r{number}", keeping(user()), "x", ())
    assert isinstance(kept.whole(keeping(user(), continues="r0")), Refusal)
    assert isinstance(kept.whole(keeping(user(), continues="r199")), ModelRequest)
