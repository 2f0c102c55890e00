"""What the service does by itself: state machines, scheduling, scaling. No HTTP, no asyncio, no waiting."""
