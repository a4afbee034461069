"""Reference values on which two independent tools agree, run against every function of the rules in scope."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pytest_regcase.errors import UsageRefused
from pytest_regcase.rules import (
    binomial,
    changepoint,
    comparison,
    drift,
    evidence_process,
    flake,
    many_claims,
    operating,
    pass_at_k,
    pooling,
    quarantine,
    rerun,
    spending,
    suite,
)
from pytest_regcase.rules.sequential import Plan

Inputs = Mapping[str, Any]
FEWEST_ROWS = 240

OUT_OF_SCOPE = {
    "wilson_lower": "an approximate bound; ours is exact",
    "jeffreys_upper": "slightly above its nominal risk; ours is exact",
    "barnard_p": "another exact test than the two that can be chosen",
    "rerun_n_plugin": "takes the baseline at its word; more than doubles the stated risk",
    "rerun_n_lcb": "asks for up to three times the runs of the exact test",
    "sprt_oc": "Wald's threshold does not keep the stated risk, so the plan is not offered",
    "sprt_clean_n": "as sprt_oc",
}
"""Functions of the reference that we do not offer, each with the reason."""


def exact(number: float) -> str:
    """Return a number of the reference as the decimal string that a user writes."""
    return format(Decimal(repr(number)), "f")


def _operating(bounds: Sequence[int], rate: float) -> list[float]:
    found = operating.operating(Plan(name="reference", bounds=tuple(bounds)), rate)
    return [found.accept, found.expected_runs]


def _changepoint(row: Inputs) -> list[float]:
    split = changepoint.best_changepoint([bool(each) for each in row["seq"]], (row["a"], row["b"]))
    assert split is not None
    return [split.start, split.score]


def _cusum(row: Inputs) -> list[float]:
    found = drift.cusum([bool(each) for each in row["seq"]], exact(row["q0"]), exact(row["f1"]))
    return [found.final, found.highest]


def _prior(row: Inputs) -> tuple[str, str]:
    return exact(row["a"]), exact(row["b"])


OURS: Mapping[str, Callable[[Inputs], Any]] = {
    "clean_reruns": lambda row: rerun.clean_reruns(exact(row["p"]), exact(row["alpha"])),
    "zero_failure_upper": lambda row: binomial.upper_bound(0, row["n"], exact(row["alpha"])),
    "cp_lower": lambda row: binomial.lower_bound(row["k"], row["n"], exact(row["alpha"])),
    "cp_upper": lambda row: binomial.upper_bound(row["k"], row["n"], exact(row["alpha"])),
    "suite_green": lambda row: suite.suite_green(exact(row["q"]), row["N"], row["r"]),
    "flake_budget": lambda row: suite.flake_budget(exact(row["target"]), row["N"], row["r"]),
    "bb_all_fail": lambda row: suite.bb_all_fail(exact(row["q"]), exact(row["rho"]), row["r"]),
    "suite_green_bb": lambda row: suite.suite_green_bb(exact(row["q"]), exact(row["rho"]), row["N"], row["r"]),
    "rerun_n_bayes": lambda row: comparison.bayes_runs(row["k"], row["n"], exact(row["alpha"]), _prior(row)),
    "predictive_zero": lambda row: comparison.predictive_zero(row["k"], row["n"], row["m"], _prior(row)),
    "fisher_p": lambda row: comparison.fisher_p(row["k1"], row["n1"], row["k2"], row["n2"]),
    "rerun_n_fisher": lambda row: comparison.fisher_runs(row["k"], row["n"], exact(row["alpha"])),
    "boschloo_p": lambda row: comparison.boschloo_p(row["k1"], row["n1"], row["k2"], row["n2"]),
    "acceptance_n": lambda row: operating.acceptance_runs(row["c"], exact(row["p"]), exact(row["alpha"])),
    "accept_prob": lambda row: _operating([row["n"]] * (row["c"] + 1), row["p"])[0],
    "gate_plan": lambda row: suite.gate_plan(
        exact(row["q0"]), exact(row["f1"]), exact(row["false_red"]), exact(row["miss"])
    ),
    "rerun_pass_prob": lambda row: suite.rerun_pass_prob(exact(row["f"]), row["r"]),
    "curtailed_asn": lambda row: _operating([row["n"]] * (row["c"] + 1), row["p"])[1],
    "multi_plan_oc": lambda row: _operating(row["bounds"], row["p"]),
    "emix": lambda row: evidence_process.e_beta(row["k"], row["n"], exact(row["p0"]), row["a"], row["b"]),
    "emix_min_n": lambda row: evidence_process.e_beta_runs(
        row["k"], exact(row["p0"]), exact(row["alpha"]), row["a"], row["b"]
    ),
    "e_point": lambda row: evidence_process.e_point(row["k"], row["n"], row["p0"], row["p1"]),
    "cs_beta": lambda row: evidence_process.confidence_sequence(
        row["k"], row["n"], exact(row["alpha"]), row["a"], row["b"]
    ),
    "streak_prob": lambda row: operating.streak_probability(row["L"], row["N"], row["p"]),
    "streak_wait": lambda row: operating.streak_wait(row["L"], row["p"]),
    "bb_loglik": lambda row: changepoint.bb_loglik(row["x"], row["n"], (row["a"], row["b"])),
    "best_changepoint": _changepoint,
    "pass_at_k": lambda row: pass_at_k.pass_at_k(row["n"], row["c"], row["k"]),
    "pass_hat_k": lambda row: pass_at_k.pass_hat_k(row["n"], row["c"], row["k"]),
    "pass_hat_k_ci": lambda row: pass_at_k.pass_hat_k_interval(row["n"], row["c"], row["k"], exact(row["alpha"])),
    "pass_at_k_ci": lambda row: pass_at_k.pass_at_k_interval(row["n"], row["c"], row["k"], exact(row["alpha"])),
    "icc_anova": lambda row: pooling.icc_anova(row["table"], row["m"]),
    "clustered_se": lambda row: pooling.clustered_se(row["table"], row["m"]),
    "n_eff_deff": lambda row: pooling.n_eff_deff(row["n"], row["m"], row["rho"]),
    "kish": lambda row: pooling.kish(row["sizes"]),
    "runs_lower_p": lambda row: pooling.runs_lower_p([bool(each) for each in row["seq"]]),
    "tarone_z": lambda row: pooling.tarone_z(row["x"], row["n"]),
    "holm": lambda row: many_claims.holm(row["p"]),
    "bh": lambda row: many_claims.bh(row["p"]),
    "by": lambda row: many_claims.by(row["p"]),
    "ebh_count": lambda row: len(many_claims.ebh(row["e"], exact(row["alpha"]))),
    "attempt_clean_n": lambda row: spending.spent_plan(
        "zero", exact(row["p"]), exact(row["alpha"]), row["j"]
    ).bounds[0],
    "quarantine_min_k": lambda row: quarantine.quarantine_min_k(
        row["n"], exact(row["budget"]), exact(row["alpha"])
    ),
    "beta_upper": lambda row: flake.beta_upper(row["k"], row["n"], (row["a"], row["b"]), row["alpha"]),
    "cusum": _cusum,
    "ppv_fixed": lambda row: comparison.ppv_fixed(exact(row["prior"]), exact(row["p"]), row["n"]),
    "false_fixed_risk_fisher": lambda row: comparison.false_fixed_risk_fisher(
        row["n0"], exact(row["p"]), exact(row["alpha"])
    ),
    "false_fixed_risk_first_failure": lambda row: comparison.false_fixed_risk_first_failure(
        exact(row["p"]), exact(row["alpha"])
    ),
}
"""Function of the reference -> ours, called with the inputs of a row."""


def agrees(found: Any, wanted: Any, tolerance: Mapping[str, float]) -> bool:
    """Say whether a value is the reference's, element by element, within the tolerance that the row states."""
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            agrees(ours, theirs, tolerance) for ours, theirs in zip(found, wanted, strict=True)
        )
    allowed = max(tolerance["abs"], tolerance["rel"] * abs(wanted))
    return bool(abs(float(found) - wanted) <= allowed if allowed else found == wanted)


def _is_refused(row: Mapping[str, Any]) -> bool:
    """Say whether the row asks for what we refuse: runs that rule out a rate of 1."""
    return bool(row["function"] == "clean_reruns" and row["inputs"]["p"] == 1)


def test_our_functions_give_the_reference_values(
    shared_reference: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every row of every function in scope; the functions out of scope are named with the reason."""
    rows = json.loads((shared_reference / "statistics.json").read_text("utf-8"))["rows"]
    in_scope = [row for row in rows if row["function"] in OURS and not _is_refused(row)]
    refused = [row for row in rows if _is_refused(row)]
    wrong = [
        f"{row['id']} {row['function']}({row['inputs']}): {found}, reference {row['value']}"
        for row in in_scope
        if not agrees(found := OURS[row["function"]](row["inputs"]), row["value"], row["tolerance"])
    ]
    with capsys.disabled():
        left = Counter(row["function"] for row in rows if row["function"] not in OURS)
        print(f"\nreference: {len(in_scope)} of {len(rows)} rows run, {len(OURS)} functions")
        print(f"  refused, a rate of 1 asks for no evidence: {', '.join(row['id'] for row in refused)}")
        for name, count in left.items():
            print(f"  out of scope: {name}, {count} rows: {OUT_OF_SCOPE[name]}")
    assert not wrong, "\n".join(wrong)
    for row in refused:
        with pytest.raises(UsageRefused, match="no evidence at all"):
            OURS[row["function"]](row["inputs"])
    assert len(in_scope) >= FEWEST_ROWS
    assert set(OUT_OF_SCOPE).isdisjoint(OURS)


@pytest.mark.parametrize(
    ("found", "wanted", "tolerance", "same"),
    [
        (29, 29, {"abs": 0, "rel": 0}, True),
        (30, 29, {"abs": 0, "rel": 0}, False),
        (0.1 + 1e-12, 0.1, {"abs": 1e-9, "rel": 1e-7}, True),
        (0.1 + 1e-6, 0.1, {"abs": 1e-9, "rel": 1e-7}, False),
        ((1.0, 31.0), [1.0, 31.0], {"abs": 1e-9, "rel": 0}, True),
        ((1.0, 32.0), [1.0, 31.0], {"abs": 1e-9, "rel": 0}, False),
        ((1.0,), [1.0, 31.0], {"abs": 1e-9, "rel": 0}, False),
    ],
)
def test_the_comparison_can_fail(found: Any, wanted: Any, tolerance: Mapping[str, float], same: bool) -> None:
    """What compares with the reference tells a wrong value from a right one."""
    assert agrees(found, wanted, tolerance) is same
