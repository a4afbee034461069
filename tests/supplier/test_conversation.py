from pytest_regcase.supplier.conversation import MainConversation
from pytest_regcase.supplier.protocol import Message, ModelRequest
from tests.supplier.requests import got, request, said, user

BASH = frozenset({"bash"})
NONE: frozenset[str] = frozenset()


def recorded() -> MainConversation:
    return MainConversation(BASH, "Fix it.", recorded_only=True)


def unrecorded(task: str | None = "Fix it.") -> MainConversation:
    return MainConversation(NONE, task, recorded_only=True)


def test_the_request_that_offers_the_recorded_tools_is_main() -> None:
    main = recorded()
    assert main.place(request(user("Title for: Fix it."), tools=()), BASH) == "side"
    assert main.place(request(tools=("plan",)), BASH) == "side"
    assert not main.found
    assert main.place(request(tools=("plan", "bash")), BASH) == "main"
    assert main.found


def test_a_request_without_tools_stays_a_side_call() -> None:
    main = recorded()
    main.place(request(), BASH)
    assert main.place(request(user(), said("c1"), got("c1"), user("Summarise."), tools=()), NONE) == "side"


def test_a_main_request_that_lost_the_needed_tool_is_still_main() -> None:
    main = MainConversation(frozenset({"bash", "submit"}), None, recorded_only=True)
    main.place(request(tools=("bash", "submit")), BASH)
    assert main.place(request(tools=("bash",)), frozenset({"submit"})) == "main"


def test_at_the_failing_step_the_same_tools_are_main() -> None:
    main = recorded()
    main.place(request(), BASH)
    assert main.place(request(tools=("bash", "extra")), NONE) == "main"
    assert main.place(request(tools=("other",)), NONE) == "side"


def test_where_nothing_calls_a_tool_the_first_that_offers_any_is_main() -> None:
    main = unrecorded()
    assert main.place(request(user("Title for: Fix it."), tools=()), NONE) == "main"
    assert main.place(request(tools=("anything",)), NONE) == "new-main"
    assert main.place(request(user("Title again for: Fix it."), tools=()), NONE) == "side"
    assert main.place(request(user(), said("c1"), got("c1"), tools=("anything",)), NONE) == "main"


def test_without_tools_the_one_that_holds_the_task_is_main() -> None:
    main = unrecorded("Fix\n  it.")
    assert main.place(request(user("Hello"), tools=()), NONE) == "main"
    assert main.place(request(user("You are asked: Fix it. Go."), tools=()), NONE) == "new-main"
    assert main.place(request(user("Hello"), tools=()), NONE) == "side"


def test_without_task_and_tools_the_first_is_main_and_goes_on() -> None:
    main = unrecorded(None)
    assert main.place(request(user("A"), tools=()), NONE) == "main"
    assert main.place(request(user("A"), said(text="x"), user("B"), tools=()), NONE) == "main"
    assert main.place(request(user("C"), tools=()), NONE) == "side"


def test_a_conversation_that_went_on_is_not_replaced() -> None:
    main = unrecorded()
    main.place(request(user("Fix it."), tools=()), NONE)
    main.place(request(user("Fix it."), said(text="x"), user("more"), tools=()), NONE)
    assert main.place(request(tools=("helper",)), NONE) == "side"


def test_live_an_agent_with_other_tools_has_a_main_conversation() -> None:
    main = MainConversation(BASH, "Fix it.", recorded_only=False)
    assert main.place(request(user("Title"), tools=()), NONE) == "main"
    assert main.place(request(tools=("shell",)), NONE) == "new-main"


def helper(*more: Message) -> ModelRequest:
    """A request of a sub-agent that has the very same tools."""
    return request(user("Review the change."), *more)


def follower(*more: Message) -> ModelRequest:
    return request(user(), said("c1"), got("c1"), *more)


def test_another_conversation_with_the_same_tools_is_no_main_one() -> None:
    main = recorded()
    assert main.place(request(), BASH) == "main"
    assert main.place(helper(), BASH) == "side"
    assert main.place(follower(), BASH) == "main"
    assert main.place(helper(said("x1"), got("x1")), BASH) == "side"
    assert main.place(follower(said("c2"), got("c2")), NONE) == "main"
    assert main.place(helper(said("x1"), got("x1"), said("x2"), got("x2")), NONE) == "side"


def test_a_conversation_that_starts_anew_is_the_main_one_if_it_asks_the_same() -> None:
    main = recorded()
    system = Message("system", "It is 12:01.")
    main.place(request(Message("system", "It is 12:00."), user()), BASH)
    main.place(follower(), BASH)
    assert main.place(request(), BASH) == "main"
    assert main.place(request(system, user("Fix  it.\n")), BASH) == "main"


def test_what_begins_as_the_main_one_and_says_more_is_main() -> None:
    main = recorded()
    main.place(request(), BASH)
    assert main.place(request(user(), user("I ran cat a: old")), BASH) == "main"


def test_a_prompt_that_changes_in_mid_conversation_stays_main() -> None:
    main = recorded()
    main.place(request(), BASH)
    changed = request(user("Fix it. You have 3 calls left."), said("c1"), got("c1"))
    assert main.place(changed, BASH) == "main"


def test_of_several_with_the_recorded_tools_the_one_that_holds_the_task_is_main() -> None:
    main = recorded()
    assert main.place(request(user("Plan the work."), tools=("bash",)), BASH) == "main"
    assert main.place(request(user("You are asked: Fix it.")), BASH) == "new-main"
    assert main.place(request(user("Plan the work."), said("c1"), got("c1")), BASH) == "side"
    assert main.place(request(user("You are asked: Fix it."), said("c1"), got("c1")), BASH) == "main"
    # A helper that is told the task too comes too late.
    assert main.place(request(user("Review how they did this: Fix it.")), BASH) == "side"


def test_live_a_helper_with_the_same_tools_is_no_main_one() -> None:
    main = MainConversation(BASH, "Fix it.", recorded_only=False)
    assert main.place(request(), BASH) == "main"
    assert main.place(helper(), BASH) == "side"


def test_after_the_fault_a_conversation_that_may_be_the_task_again_is_main() -> None:
    main = recorded()
    main.place(request(), BASH)
    assert main.place(helper(), BASH, faulted=True) == "side"
    again = request(user("The last try failed. Fix it."))
    assert main.place(again, BASH, faulted=True) == "main"
    assert recorded_without_task().place(again, BASH, faulted=True) == "main"


def recorded_without_task() -> MainConversation:
    main = MainConversation(BASH, None, recorded_only=True)
    main.place(request(), BASH)
    return main


def test_a_helper_from_before_the_fault_stays_one() -> None:
    main = recorded_without_task()
    assert main.place(helper(), BASH) == "side"
    assert main.place(helper(said("x1"), got("x1")), BASH, faulted=True) == "side"
