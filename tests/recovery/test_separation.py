from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from pytest_regcase.records.attempt import Said
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.words import HypothesisClass
from pytest_regcase.recovery.said import said_of
from pytest_regcase.recovery.separation import groups, hidden_causes, sentences, separate
from tests.recovery.recorded_runs import recorded_runs

CLASSES: dict[str, HypothesisClass] = {"hangs": "deadline", "refused": "auth", "killed": "process-death"}


def logged(message: str, trace: str = "", artefact: str = "a") -> Said:
    return Said(message=message, whole=message + trace, artefact=artefact, counted=("artefact", "stderr"))


def matrix(
    hangs: list[Said], refused: list[Said], killed: list[Said] | None = None, *, asked: bool = False
) -> Separation:
    said = {"hangs": hangs, "refused": refused, **({} if killed is None else {"killed": killed})}
    classes = {name: CLASSES[name] for name in said}
    return separate(classes, said, asked=asked)


def told(separation: Separation) -> dict[tuple[str, str], str]:
    return {(each.first, each.second): each.told_apart for each in separation.pairs}


class TestPairs:
    def test_by_message_by_stack_trace_and_not_at_all(self) -> None:
        found = told(matrix([logged("timeout")], [logged("401", "f1")], [logged("401", "f2")]))
        assert found == {
            ("hangs", "refused"): "message",
            ("hangs", "killed"): "message",
            ("refused", "killed"): "stack-trace",
        }
        assert told(matrix([logged("no", "f1")], [logged("no", "f1")])) == {
            ("hangs", "refused"): "indistinguishable"
        }

    def test_a_simulation_whose_own_runs_differ_is_noisy(self) -> None:
        separation = matrix([logged("1"), logged("2")], [logged("401"), logged("401")])
        assert told(separation) == {("hangs", "refused"): "noisy"}
        assert [each.noisy for each in separation.simulations] == [True, False]
        assert "two runs of the same simulation already differ" in " ".join(sentences(separation))

    def test_noise_in_the_stack_alone_hides_only_what_the_stack_would_tell(self) -> None:
        noisy = [logged("no", "f1"), logged("no", "f2")]
        assert told(matrix(noisy, [logged("no", "f3")])) == {("hangs", "refused"): "noisy"}
        assert told(matrix(noisy, [logged("401")])) == {("hangs", "refused"): "message"}

    def test_two_runs_that_agree_are_not_told_apart_whatever_the_others_say(self) -> None:
        separation = matrix([logged("1"), logged("2")], [logged("2"), logged("3")])
        assert told(separation) == {("hangs", "refused"): "indistinguishable"}

    def test_what_proved_nothing_is_not_compared_and_is_named(self) -> None:
        separation = separate(CLASSES, {"hangs": [logged("1")], "refused": [logged("2")], "killed": []})
        assert separation.not_compared == ("killed",)
        assert len(separation.pairs) == 1

    def test_what_the_artefact_alone_tells_apart_is_counted(self) -> None:
        separation = matrix([logged("1")], [logged("2")], [logged("3", artefact="b")])
        assert separation.by_artefact == 2
        assert "(the artefact alone tells 2 apart)" in sentences(separation)[-1]


class TestWords:
    def test_a_group_is_named_with_its_classes_and_what_to_do(self) -> None:
        first, rests_on = sentences(matrix([logged("no")], [logged("no")]))
        assert first == ("its logs cannot separate hangs (deadline) and refused (auth); fix the logging first")
        assert rests_on == (
            "0 of 1 pair told apart by message; compared: artefact, stderr (the artefact alone tells 0 apart);"
            " one run of each, so a difference may be chance"
        )

    def test_several_groups_are_one_sentence(self) -> None:
        classes: dict[str, HypothesisClass] = {"a": "deadline", "b": "auth", "c": "network", "d": "budget"}
        said = {name: [logged("x" if name in "ab" else "y")] for name in classes}
        assert sentences(separate(classes, said))[0] == (
            "its logs cannot separate a (deadline) and b (auth), nor c (network) and d (budget);"
            " fix the logging first"
        )

    def test_simulations_of_one_class_may_say_the_same(self) -> None:
        separation = separate(
            {"a": "deadline", "b": "deadline"}, {"a": [logged("x")], "b": [logged("x")]}, asked=True
        )
        assert hidden_causes(separation) == ()
        assert groups(separation, "indistinguishable") == (("a", "b"),)
        assert sentences(separation)[0] == "its logs say the same of a and b, all of class deadline"
        assert separation.finding is not None
        assert separation.finding.status == "not-applicable"

    def test_it_says_how_many_runs_it_rests_on(self) -> None:
        twice = matrix([logged("1")] * 2, [logged("2")] * 3)
        assert sentences(twice)[-1].endswith("2 runs or more of each")
        assert sentences(matrix([logged("1")], [logged("2")] * 3))[-1].endswith(
            "one run of some, so a difference may be chance"
        )

    def test_with_nothing_to_compare_nothing_is_said(self) -> None:
        assert sentences(separate(CLASSES, {"hangs": [logged("1")]})) == ()


class TestExpectation:
    @pytest.mark.parametrize(
        ("hangs", "refused", "status"),
        [
            ([logged("1")], [logged("2")], "kept"),
            ([logged("1", "a")], [logged("1", "b")], "kept"),
            ([logged("1")], [logged("1")], "broken"),
            ([logged("1"), logged("2")], [logged("3")], "not-observable"),
            ([logged("1")], [], "not-observable"),
        ],
    )
    def test_it_is_judged_over_the_case(self, hangs: list[Said], refused: list[Said], status: str) -> None:
        finding = matrix(hangs, refused, asked=True).finding
        assert finding is not None
        assert (finding.expectation, finding.status) == ("separates_causes", status)

    def test_without_being_asked_for_there_is_none(self) -> None:
        assert matrix([logged("1")], [logged("1")]).finding is None


Recorded = Mapping[str, Mapping[str, Said]]
AGENTS = ("openai-sdk", "anthropic-sdk__")
HYPOTHESES: dict[str, HypothesisClass] = {
    "401": "auth",
    "429quota": "budget",
    "429rate": "rate-limit",
    "500oom": "resource-exhaustion",
    "503": "overload",
    "stall": "deadline",
    "midstall": "deadline",
    "rst": "network",
    "killed": "process-death",
    "empty_content": "hidden",
    "empty_choices": "malformed",
    "sse_error": "malformed",
}


@pytest.fixture(scope="module")
def recorded(shared_trials: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """What the runs of the agents below logged, by agent and fault."""
    some = tmp_path_factory.mktemp("some")
    (some / "agents").mkdir()
    for folder in (shared_trials / "agents").iterdir():
        if folder.name.startswith(AGENTS):
            (some / "agents" / folder.name).symlink_to(folder)
    found: dict[str, dict[str, Said]] = {}
    for run in recorded_runs(some, some / "neutral"):
        agent, _, fault = run.name.partition("__")
        said = said_of(run.observed)
        if said is not None and run.observed.wire.delivered:
            found.setdefault(agent, {})[fault] = said
    return found


class TestRecordedRuns:
    """Real agents under known faults: what their own logs tell apart."""

    def matrix(self, recorded: Recorded, agent: str) -> Separation:
        said = {name: [each] for name, each in recorded[agent].items() if name in HYPOTHESES}
        return separate({name: HYPOTHESES[name] for name in said}, said, asked=True)

    def test_a_wrapper_that_hides_what_was_raised_tells_no_cause(self, recorded: Recorded) -> None:
        separation = self.matrix(recorded, "openai-sdk-hide")
        raised = ("401", "429quota", "500oom", "rst", "stall")
        assert hidden_causes(separation) == (raised,)
        found = told(separation)
        assert all(found[pair] == "indistinguishable" for pair in combinations(raised, 2))
        # The empty answer raises nothing: "" stands where the wrapper writes null.
        assert {pair: how for pair, how in found.items() if "empty_content" in pair} == {
            pair: "message" for pair in found if "empty_content" in pair
        }
        assert separation.finding is not None
        assert separation.finding.status == "broken"
        assert all(name in sentences(separation)[0] for name in raised)
        assert "fix the logging first" in sentences(separation)[0]

    def test_the_plain_loop_tells_all_apart_by_what_it_prints(self, recorded: Recorded) -> None:
        separation = self.matrix(recorded, "openai-sdk")
        assert len(separation.simulations) == 9
        assert {*told(separation).values()} == {"message"}
        assert "stderr" in separation.counted
        assert separation.by_artefact < len(separation.pairs)

    @pytest.mark.parametrize("agent", ["openai-sdk-stream", "anthropic-sdk"])
    def test_some_pairs_only_a_stack_trace_tells_apart(self, recorded: Recorded, agent: str) -> None:
        by_trace = {pair for pair, how in told(self.matrix(recorded, agent)).items() if how == "stack-trace"}
        assert by_trace == {("killed", "rst"), ("midstall", "stall")}
