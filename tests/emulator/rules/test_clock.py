"""The two times, and the timers that go by the service's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from batch_emulator.clock import ManualClock, SystemClock, Timers, advance

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def timers(clock: ManualClock) -> Timers:
    return Timers(clock)


def test_a_manual_clock_moves_only_when_told(clock: ManualClock, timers: Timers) -> None:
    assert (clock.now(), clock.service_seconds()) == (START, 0)
    advance(clock, timers, 90)
    assert clock.now() == clock.service_now() == START + timedelta(seconds=90)
    clock.move_to(30)
    assert clock.service_seconds() == 90


def test_service_time_runs_faster_and_wall_time_does_not() -> None:
    clock = SystemClock(time_scale=1000)
    before, service_before = datetime.now(UTC), clock.service_now()
    while clock.service_seconds() < 5:
        pass
    assert clock.service_now() - service_before > timedelta(seconds=4)
    assert abs(clock.now() - before) < timedelta(seconds=4)


@pytest.mark.parametrize("scale", [0, -1])
def test_time_cannot_stand_still_or_go_back(scale: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        SystemClock(scale)


def test_timers_fire_in_order_each_at_its_own_time(clock: ManualClock, timers: Timers) -> None:
    fired: list[tuple[str, float]] = []
    for name, seconds in (("late", 20), ("early", 10), ("early too", 10)):
        timers.after(seconds, lambda name=name: fired.append((name, clock.service_seconds())))
    advance(clock, timers, 9)
    assert fired == []
    advance(clock, timers, 100)
    assert fired == [("early", 10), ("early too", 10), ("late", 20)]
    assert timers.next_due() is None


def test_a_timer_may_set_another_within_the_same_advance(clock: ManualClock, timers: Timers) -> None:
    fired: list[float] = []

    def again() -> None:
        fired.append(clock.service_seconds())
        timers.after(10, again)

    timers.after(10, again)
    advance(clock, timers, 35)
    assert fired == [10, 20, 30]


def test_a_cancelled_timer_never_fires(clock: ManualClock, timers: Timers) -> None:
    fired: list[str] = []
    timer = timers.after(10, lambda: fired.append("cancelled"))
    timers.after(10, lambda: fired.append("kept"))
    timer.cancel()
    advance(clock, timers, 10)
    timer.cancel()
    assert fired == ["kept"]


def test_only_an_earlier_timer_wakes_the_driver(timers: Timers) -> None:
    woken: list[float | None] = []
    timers.on_earlier = lambda: woken.append(timers.next_due())
    for seconds in (10, 20, 5):
        timers.after(seconds, lambda: None)
    assert woken == [10, 5]


def test_wall_time_is_turned_into_service_time() -> None:
    clock = SystemClock(time_scale=100)
    timer = Timers(clock).after_real(2, lambda: None)
    assert timer.due == pytest.approx(clock.service_seconds() + 200, abs=50)
