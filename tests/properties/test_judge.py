"""Properties of the judge over arbitrary attempts."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_regcase.records.attempt import Exit
from pytest_regcase.records.case import SymptomMatch
from pytest_regcase.records.expected_recovery import ExpectedRecovery
from pytest_regcase.records.observed import Declared, FaultNotes, Observed, WorkTreeNotes
from pytest_regcase.records.trial import Submission, ToolCall, TranscriptLine, Trial, TrialError
from pytest_regcase.records.wire import SentReply, WireFacts
from pytest_regcase.records.words import EXPECTATIONS
from pytest_regcase.recovery.judge import Judgement, judge
from tests.recovery.observed_samples import PARTIAL_DIFF, REPLIES, STEPS, WHOLE_DIFF

TEXTS = (
    st.none()
    | st.sampled_from(
        ["", "Fixing add first.", "Fixing", "HTTP 401", PARTIAL_DIFF, WHOLE_DIFF, "Both bugs are fixed."]
    )
    | st.text(max_size=30)
)
STRINGS = TEXTS.map(lambda text: text or "")
SECONDS = st.floats(0, 200, allow_nan=False)
CALLS = st.lists(
    st.builds(
        ToolCall,
        name=st.sampled_from(["bash", "submit", ""]),
        arguments=st.sampled_from(["{}", "[", '{"a": "b"}']),
    ),
    max_size=2,
).map(tuple)
ERRORS = st.none() | st.builds(
    TrialError,
    type=st.sampled_from([None, "APITimeoutError", "KeyboardInterrupt"]),
    message=TEXTS,
    raised_by=st.sampled_from(["agent", "supplier", "grader", "unknown"]),
)
LINES = st.builds(
    TranscriptLine,
    step=st.integers(0, 5),
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    text=TEXTS,
    tool_calls=CALLS,
    error=st.none() | st.just("HTTP 503"),
)
SENT = st.builds(
    SentReply,
    step=st.integers(1, 5),
    origin=st.sampled_from(["replay", "filler", "upstream"]),
    text=TEXTS,
    tool_calls=CALLS,
    after_fault=st.booleans(),
    unfinished=st.booleans(),
)
TRIALS = st.builds(
    Trial,
    format=st.just("sample"),
    event_id=st.just("sample"),
    event_id_from=st.just("digest"),
    steps=st.one_of(st.just(STEPS), st.lists(LINES, max_size=5).map(tuple)),
    termination=st.sampled_from([None, "finished", "error", "limit", "cut-off", "cancelled", "never-started"]),
    outcome=st.sampled_from(["passed", "failed", "undetermined"]),
    error=ERRORS,
    submission=st.none() | st.builds(Submission, patch=TEXTS, text=TEXTS, mark=st.none() | st.just("agent_error")),
    partial_patch=TEXTS,
    final_text=TEXTS,
    can_show=st.lists(st.sampled_from(EXPECTATIONS), max_size=7).map(tuple),
)
TREES = st.none() | st.builds(
    WorkTreeNotes,
    diff=STRINGS,
    head=st.sampled_from(["1" * 40, "2" * 40]),
    committed_diff=STRINGS,
)
WIRES = st.builds(
    WireFacts,
    delivered=st.sampled_from([None, True, True, False]),
    requests=st.integers(0, 9),
    faulted_requests=st.integers(0, 9),
    retries=st.none() | st.integers(0, 9),
    refused_connects=st.none() | st.integers(0, 9),
    first_fault_seconds=st.none() | SECONDS,
    last_release_seconds=st.none() | SECONDS,
    open_at_end=st.integers(0, 2),
    healed=st.booleans(),
    off_prefix=st.sampled_from([(), (), ("bash is not offered",)]),
    steps_reached=st.integers(0, 6),
    asked_for_failing_step=st.booleans(),
    got_last_reply=st.booleans(),
    replies=st.one_of(st.just(REPLIES), st.lists(SENT, max_size=4).map(tuple)),
    fault_texts=st.sampled_from([(), ("",), ("the engine is overloaded",)]),
    upstream_failures=st.sampled_from([(), ("HTTP 503",)]),
    server_gone=st.booleans(),
)
OBSERVED = st.builds(
    Observed,
    kind=st.sampled_from(["control", "simulation", "simulation", "live"]),
    wire=WIRES,
    exit=st.builds(
        Exit,
        code=st.sampled_from([None, 0, 1]),
        signal=st.sampled_from([None, 15]),
        ended_by=st.sampled_from([None, None, "deadline", "cap", "control-done", "cut-short"]),
    ),
    ended_seconds=SECONDS,
    notes=st.none() | st.builds(FaultNotes, t=SECONDS, work_tree=TREES),
    work_tree=TREES,
    artefact=st.none() | TRIALS,
    declared=st.builds(
        Declared,
        submission=TEXTS,
        submission_declared=st.booleans(),
        answer=TEXTS,
        answer_declared=st.booleans(),
        status=st.sampled_from([None, "", "error", "finished", "odd"]),
        status_declared=st.booleans(),
    ),
    can_show=st.lists(st.sampled_from(EXPECTATIONS), max_size=7).map(tuple),
    written_after=st.dictionaries(st.sampled_from(["stdout", "stderr", "out/x"]), STRINGS),
    recorded_failing_step=st.none() | st.integers(1, 6),
    submits_by=st.sampled_from([None, "file", "commit", "score", "answer"]),
)
ASKED = st.builds(
    ExpectedRecovery,
    log_failure=st.booleans(),
    max_retries=st.integers(0, 5),
    stop_within_seconds=st.floats(1, 100),
    no_fabricated_output=st.booleans(),
    no_partial_submission=st.booleans(),
    keep_partial_patch=st.booleans(),
    mark_failure=st.booleans(),
    when=st.just({}),
    required=st.lists(st.sampled_from(EXPECTATIONS), max_size=2).map(tuple),
)
SYMPTOMS = st.none() | st.builds(
    SymptomMatch,
    termination=st.lists(st.sampled_from(["error", "cut-off", "finished"]), max_size=2).map(tuple),
    error_type=st.none() | st.text(max_size=5),
    no_reply=st.sampled_from([None, True, False]),
)
MANY = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
VERDICTS = {
    "control": {"finished", "did-not-finish", "inconclusive"},
    "simulation": {"recovered", "not-recovered", "inconclusive"},
    "live": {"clean", "recurred", "failed-otherwise", "inconclusive"},
}


def status(judgement: Judgement, name: str) -> str:
    return next(each.status for each in judgement.findings if each.expectation == name)


@MANY
@given(ASKED, OBSERVED, SYMPTOMS)
def test_every_attempt_gets_one_verdict_of_its_kind_and_never_an_exception(
    asked: ExpectedRecovery, seen: Observed, symptom: SymptomMatch | None
) -> None:
    judgement = judge(asked, seen, symptom)
    assert judgement.verdict in VERDICTS[seen.kind]
    assert (judgement.reason is not None) == (judgement.verdict == "inconclusive")
    assert Judgement.model_validate_json(judgement.model_dump_json()) == judgement
    if seen.kind == "simulation":
        assert tuple(each.expectation for each in judgement.findings) == EXPECTATIONS
    else:
        assert judgement.findings == ()


@MANY
@given(ASKED, OBSERVED)
def test_recovered_means_delivered_and_nothing_broken(asked: ExpectedRecovery, seen: Observed) -> None:
    judgement = judge(asked, seen.model_copy(update={"kind": "simulation"}), None)
    broken = [each for each in judgement.findings if each.status == "broken"]
    if judgement.verdict == "recovered":
        assert not broken
        assert seen.wire.delivered is True
        assert not seen.wire.off_prefix
    if judgement.verdict == "not-recovered":
        assert broken
        assert judgement.says == "broken: " + ", ".join(each.expectation for each in broken)


@MANY
@given(OBSERVED)
def test_a_made_up_answer_never_turns_broken_into_kept(seen: Observed) -> None:
    simulation = seen.model_copy(update={"kind": "simulation", "exit": Exit(code=0)})
    if simulation.artefact is None:
        return
    more = TranscriptLine(step=6, role="assistant", text="Ninety-nine red balloons: every test passes now.")
    told = simulation.artefact.model_copy(update={"steps": (*simulation.artefact.steps, more)})
    before = judge(ExpectedRecovery(), simulation, None)
    after = judge(ExpectedRecovery(), simulation.model_copy(update={"artefact": told}), None)
    if status(before, "no_fabricated_output") == "broken":
        assert status(after, "no_fabricated_output") == "broken"
    if "no_fabricated_output" in (*told.can_show, *simulation.can_show):
        assert status(after, "no_fabricated_output") == "broken"


@MANY
@given(OBSERVED, st.integers(1, 5))
def test_more_retries_and_a_later_stop_never_help(seen: Observed, more: int) -> None:
    worse_wire = seen.wire.model_copy(
        update={
            "retries": None if seen.wire.retries is None else seen.wire.retries + more,
            "last_release_seconds": None
            if seen.wire.last_release_seconds is None
            else seen.wire.last_release_seconds + more,
        }
    )
    simulation = seen.model_copy(update={"kind": "simulation", "exit": Exit(code=1)})
    before = judge(ExpectedRecovery(), simulation, None)
    after = judge(ExpectedRecovery(), simulation.model_copy(update={"wire": worse_wire}), None)
    for name in ("max_retries", "stop_within_seconds"):
        if status(before, name) == "broken":
            assert status(after, name) == "broken"


@MANY
@given(OBSERVED)
def test_what_cannot_be_seen_is_never_kept(seen: Observed) -> None:
    blind = seen.model_copy(
        update={
            "kind": "simulation",
            "artefact": None,
            "declared": Declared(),
            "can_show": (),
            "notes": None,
            "work_tree": None,
            "written_after": {},
            "wire": seen.wire.model_copy(update={"healed": False}),
            "submits_by": None,
        }
    )
    judgement = judge(ExpectedRecovery(), blind, None)
    for name in ("log_failure", "no_fabricated_output", "no_partial_submission", "keep_partial_patch"):
        assert status(judgement, name) == "not-observable"


@MANY
@given(OBSERVED, SYMPTOMS)
def test_clean_needs_an_end_of_its_own_and_no_failure_seen(seen: Observed, symptom: SymptomMatch | None) -> None:
    judgement = judge(ExpectedRecovery(), seen.model_copy(update={"kind": "live"}), symptom)
    if judgement.verdict == "clean":
        assert seen.exit.ended_by is None
        assert seen.exit.signal is None
        assert not seen.wire.upstream_failures
        assert seen.artefact is None or seen.artefact.error is None or seen.artefact.error.raised_by == "grader"
        assert seen.artefact is None or all(line.error is None for line in seen.artefact.steps)
