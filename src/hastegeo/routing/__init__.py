"""Pure functions: which pool takes a task, and why."""

from hastegeo.routing.select import FRESH_FAILURE, POLICIES, Policy, select_pool

__all__ = ["FRESH_FAILURE", "POLICIES", "Policy", "select_pool"]
