"""Which rows are compared, what the decision says of them, and what it is printed as."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import Project, RegcaseConfig
from pytest_regcase.ledger.store import Ledger
from pytest_regcase.records.attempt import Digests, Said
from pytest_regcase.records.separation import Separation
from pytest_regcase.records.simulation import Simulation
from pytest_regcase.records.words import AttemptVerdict
from pytest_regcase.reporters.terminal import summary_lines
from pytest_regcase.session.attempts.separation import own_texts
from tests.rules.attempt_samples import a_case
from tests.session.test_gate import Bench

HANGS, REFUSED = "deadline-no-answer-v1", "auth-rejected-v1"
CLASSES = {HANGS: "deadline", REFUSED: "auth"}


def said(word: str) -> Said:
    return Said(message=f"sha256:{word}", whole=f"sha256:{word}", artefact="sha256:a", counted=("stderr",))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Ledger.open(f"sqlite:///{tmp_path / 'ledger.sqlite3'}") as ledger:
        made = Bench(tmp_path, ledger)
        for name, hypothesis in CLASSES.items():
            simulation = Simulation.model_validate(
                {"id": name, "hypothesis": hypothesis, "title": "t", "fault": {"kind": "no_answer"}}
            )
            made.simulations[name] = LoadedSimulation(tmp_path / "s.toml", simulation, f"sha256:{name}")
        yield made


def a_loaded(bench: Bench, **expected: object) -> LoadedCase:
    hypotheses = [{"id": hypothesis, "simulations": [name]} for name, hypothesis in CLASSES.items()]
    return bench.loaded(a_case(hypotheses=hypotheses, expected_recovery=expected))


def in_ledger(bench: Bench, loaded: LoadedCase) -> Separation | None:
    """What the decision says over the rows that are there."""
    (case,) = bench.decide(loaded, scenarios=("control", *CLASSES)).cases
    return case.separation


def test_the_decision_holds_the_matrix_and_the_summary_says_it(bench: Bench) -> None:
    loaded = a_loaded(bench)
    bench.append(loaded, "finished", "control")
    for name in CLASSES:
        bench.append(loaded, "recovered", name, said=said("nothing"))
    decision = bench.decide(loaded, scenarios=("control", *CLASSES))
    assert decision.decision == "pass"
    (case,) = decision.cases
    assert case.separation is not None
    assert [each.told_apart for each in case.separation.pairs] == ["indistinguishable"]
    lines = summary_lines(decision)
    at = lines.index("What the agent's own logs tell apart")
    assert lines[at + 1 : at + 6] == [
        "  trial-37: its logs cannot separate deadline-no-answer-v1 (deadline) and",
        "      auth-rejected-v1 (auth); fix the logging first",
        "    0 of 1 pair told apart by message; compared: stderr; one run of each, so a",
        "      difference may be chance",
        "",
    ]


def test_the_order_in_which_attempts_end_changes_no_byte(bench: Bench, tmp_path: Path) -> None:
    loaded = a_loaded(bench, separates_causes=True)
    made = [
        ("control", None, 0),
        (HANGS, "a", 0),
        (HANGS, "b", 1),
        (REFUSED, "c", 0),
    ]
    texts = []
    for number, order in enumerate((made, [made[3], made[1], made[0], made[2]])):
        with Ledger.open(f"sqlite:///{tmp_path / f'{number}.sqlite3'}") as ledger:
            bench.ledger = ledger
            for scenario, word, try_number in order:
                verdict: AttemptVerdict = "finished" if word is None else "recovered"
                logged = None if word is None else said(word)
                bench.append(loaded, verdict, scenario, said=logged, try_number=try_number)
            texts.append(bench.decide(loaded, scenarios=("control", *CLASSES)).model_dump_json())
    assert texts[0] == texts[1]
    assert '"noisy":true' in texts[0]


@pytest.mark.parametrize(
    ("words", "decision", "code"),
    [
        (("same", "same"), "fail", "causes-not-separated"),
        (("one", "another"), "pass", None),
    ],
)
def test_a_case_that_asks_for_it_is_red_where_its_logs_are_alike(
    bench: Bench, words: tuple[str, str], decision: str, code: str | None
) -> None:
    loaded = a_loaded(bench, separates_causes=True)
    bench.append(loaded, "finished", "control")
    for name, word in zip(CLASSES, words, strict=True):
        bench.append(loaded, "recovered", name, said=said(word))
    found = bench.decide(loaded, scenarios=("control", *CLASSES))
    assert found.decision == decision
    assert [each.code for each in found.reasons if each.red] == ([] if code is None else [code])
    assert ("make the agent log what" in "\n".join(summary_lines(found))) == (code is not None)


@pytest.mark.parametrize(("required", "decision"), [([], "pass"), (["separates_causes"], "unproven")])
def test_noise_is_no_proof_and_red_only_where_it_is_required(
    bench: Bench, required: list[str], decision: str
) -> None:
    loaded = a_loaded(bench, separates_causes=True, required=required)
    bench.append(loaded, "finished", "control")
    bench.append(loaded, "recovered", HANGS, said=said("1"), session_id="before")
    bench.append(loaded, "recovered", HANGS, said=said("2"))
    bench.append(loaded, "recovered", REFUSED, said=said("3"))
    found = bench.decide(loaded, scenarios=("control", *CLASSES))
    assert found.decision == decision
    assert "separation-not-seen" in [each.code for each in found.reasons]


class TestRows:
    @pytest.mark.parametrize(
        "change",
        [
            {},
            {"digests": Digests(case="c", agent="another")},
            {"agent": "other"},
            {"said": None},
        ],
        ids=["counts", "other digests", "another agent", "said nothing"],
    )
    def test_what_is_not_of_the_present_digests_and_agent_does_not_count(
        self, bench: Bench, change: dict[str, object]
    ) -> None:
        loaded = a_loaded(bench)
        bench.append(loaded, "recovered", HANGS, said=said("1"))
        bench.append(loaded, "recovered", REFUSED, **{"said": said("2"), **change})
        assert (in_ledger(bench, loaded) is None) == bool(change)

    def test_only_the_newest_runs_of_a_simulation_are_compared(self, bench: Bench) -> None:
        loaded = a_loaded(bench)
        bench.append(loaded, "recovered", HANGS, said=said("of another machine"), session_id="s0")
        for number in range(3):
            for name in CLASSES:
                bench.append(loaded, "recovered", name, said=said(name), try_number=number)
        separation = in_ledger(bench, loaded)
        assert separation is not None
        assert [(each.runs, each.noisy) for each in separation.simulations] == [(3, False), (3, False)]

    def test_one_simulation_has_nothing_to_be_compared_with(self, bench: Bench) -> None:
        loaded = bench.loaded(a_case(hypotheses=[{"id": "deadline", "simulations": [HANGS]}]))
        bench.append(loaded, "recovered", HANGS, said=said("x"))
        assert in_ledger(bench, loaded) is None


def test_own_texts_are_the_folder_the_project_the_key_and_the_address(tmp_path: Path) -> None:
    project = Project(tmp_path, RegcaseConfig())
    urls = {"openai_base_url": "http://127.0.0.1:4000/tok/v1", "anthropic_base_url": "http://127.0.0.1:4000/tok"}
    own = dict(own_texts(project, tmp_path / "attempt", {"api_key": "sk-1", **urls}))
    assert own[str(tmp_path / "attempt")] == own[str(tmp_path)] == "<path>"
    assert own["sk-1"] == "<key>"
    assert own["/tok/v1"] == "/<openai_base_url>"
    assert "" not in own
