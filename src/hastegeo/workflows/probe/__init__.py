"""The parts of the isolation probe: the plan, the attacks by kind, and what counts as evidence."""
