from pytest_regcase.supplier.conversation import MainConversation
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
