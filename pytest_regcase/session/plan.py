"""Which attempts a session makes: the same in every process that sees the same case file and snapshot."""

from collections.abc import Mapping

from pytest_regcase.case_files import LoadedCase, LoadedSimulation
from pytest_regcase.config import AgentConfig, Project
from pytest_regcase.errors import FileError, UnknownName, did_you_mean
from pytest_regcase.records.attempt import AttemptKey, AttemptPlan
from pytest_regcase.records.session import SessionSnapshot
from pytest_regcase.rules.claim_plan import in_force, next_runs
from pytest_regcase.rules.lifecycle import case_state, is_retired, last_fix
from pytest_regcase.session.project.rules_in_force import claim_settings, expected_recovery, plan_in_force


def plan_case(
    project: Project,
    loaded: LoadedCase,
    simulations: Mapping[str, LoadedSimulation],
    snapshot: SessionSnapshot,
) -> tuple[AttemptPlan, ...]:
    """Return the attempts of one case: its control, its simulations in file order, its new live runs.

    None of a retired case.

    Raises:
        UnknownName: the case names an agent or a simulation that does not exist.
        FileError: the agent's deadline leaves no room for the case's own stop budget.
        UsageRefused: the rerun rule is none that this version can decide.
    """
    if is_retired(loaded.case):
        return ()
    name = agent_name(loaded, snapshot)
    agent = agent_config(project, name)
    check_deadline(project, loaded, name, agent)
    plans: list[AttemptPlan] = []
    if not loaded.case.passes_through or snapshot.live_new > 0:
        plans.append(AttemptPlan(key=_key(loaded, name, "control"), kind="control"))
        for simulation_id in loaded.case.simulation_ids:
            plans.append(
                AttemptPlan(
                    key=_key(loaded, name, simulation_id),
                    kind="simulation",
                    hypothesis=_known(simulations, simulation_id, loaded).simulation.hypothesis,
                )
            )
    plans.extend(_live(project, loaded, name, snapshot))
    return tuple(plans)


def agent_name(loaded: LoadedCase, snapshot: SessionSnapshot) -> str:
    """Return the name of the agent that runs this case in this session."""
    return snapshot.agent or loaded.case.agent


def agent_config(project: Project, name: str) -> AgentConfig:
    """Return the configured agent of that name.

    Raises:
        UnknownName: there is none; the configured ones are listed.
    """
    found = project.config.agents.get(name)
    if found is None:
        known = ", ".join(sorted(project.config.agents))
        raise UnknownName(
            f"Couldn't find the agent {name!r}: [tool.regcase.agents] has {known or 'none'}.\n"
            + did_you_mean(name, project.config.agents)
            + (
                f"Name one that is there, or add [tool.regcase.agents.{name}] to pyproject.toml."
                if known
                else "Run `regcase init`: it writes a complete entry into pyproject.toml."
            )
        )
    return found


def _live(project: Project, loaded: LoadedCase, name: str, snapshot: SessionSnapshot) -> tuple[AttemptPlan, ...]:
    fix, settings = last_fix(loaded.case), claim_settings(project)
    # Read also where nothing live is planned: an unusable rule is told before anything runs.
    plan = plan_in_force(project, loaded.case, 1 if fix is None else fix.number)
    if snapshot.live_new == 0 or fix is None or case_state(loaded.case, recurred=False) != "verifying":
        return ()
    if loaded.id in snapshot.fix_not_at_hand:
        # Without the ledger that the fix was claimed on no number of clean runs settles the claim.
        return ()
    pass_over = loaded.case.expected_recovery.other_failures == "pass-over"
    standing = in_force(settings, plan, snapshot.live.get(loaded.id, ()), pass_over=pass_over)
    return tuple(
        AttemptPlan(
            key=AttemptKey(case_id=loaded.id, agent=name, scenario="live", run=number),
            kind="live",
            planned_total=standing.plan.bounds[0],
            stopped_by_failures=standing.failures_left,
        )
        for number in next_runs(settings, standing, snapshot.live_new)
    )


def _key(loaded: LoadedCase, agent: str, scenario: str) -> AttemptKey:
    return AttemptKey(case_id=loaded.id, agent=agent, scenario=scenario)


def _known(
    simulations: Mapping[str, LoadedSimulation], simulation_id: str, loaded: LoadedCase
) -> LoadedSimulation:
    found = simulations.get(simulation_id)
    if found is None:
        raise UnknownName(
            f"Couldn't find the simulation {simulation_id!r} that {loaded.path} names.\n"
            f"{did_you_mean(simulation_id, simulations)}Known: {', '.join(sorted(simulations)) or 'none'}."
        )
    return found


def check_deadline(project: Project, loaded: LoadedCase, name: str, agent: AgentConfig) -> None:
    """Refuse an agent that is ended before the stop budget of the case is over: nothing could be seen of it.

    Raises:
        FileError: its deadline leaves no room.
    """
    stop = expected_recovery(project, loaded.case, None).stop_within_seconds
    # A function has the settings of the case's agent.
    settings = loaded.case.agent if "::" in name else name
    if agent.deadline_seconds <= stop:
        raise FileError(
            [
                f"{loaded.path}: stop_within_seconds is {stop:g}, but the agent {name!r} is ended"
                f" {agent.deadline_seconds:g} s after the first faulted request; deadline_seconds in"
                f" [tool.regcase.agents.{settings}] must be above {stop:g}"
            ]
        )
