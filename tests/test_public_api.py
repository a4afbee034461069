"""What the package exports, and that exporting it costs an import nothing."""

import subprocess
import sys

import pytest

import pytest_regcase


def test_every_public_name_is_there_and_documented() -> None:
    for name in pytest_regcase.__all__:
        assert getattr(pytest_regcase, name).__doc__
        assert name in dir(pytest_regcase)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        pytest_regcase.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, pytest_regcase; print([m for m in sys.modules if m.startswith(('pydantic', 'pytest_reg'))])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "['pytest_regcase']"


def test_a_case_can_be_made_with_the_plain_names() -> None:
    case = pytest_regcase.RegressionCase.model_validate(
        {
            "symptom": "no answer at step 6",
            "source_event": "eval-sweep-0412/trial-37",
            "source_revision": "agent@3f9c2e1",
            "cause_status": "unknown",
            "simulation_id": None,
            "expected_recovery": "log failure, stop within retry budget",
            "unresolved_questions": ["crash or hang?"],
        }
    )
    assert (case.symptom, case.simulation_id, case.cause_status) == ("no answer at step 6", None, "unknown")
    assert case.expected_recovery.max_retries == 3
