"""Work beside the trials: each piece is done once, in order, and ends when nobody waits for it."""

from __future__ import annotations

import sys
from threading import Event, get_ident

import pytest

from fastfed.paper.ahead import Ahead, Stopped


def test_without_a_thread_work_is_done_when_it_is_asked_for() -> None:
    done: list[str] = []
    with Ahead() as ahead:
        ahead.start("one", lambda: done.append("begun"))
        assert not done
        assert ahead.result("one", get_ident) == get_ident()


def test_beside_the_trials_each_piece_is_done_once_and_in_order() -> None:
    done: list[str] = []
    with Ahead(beside=True) as ahead:
        ahead.start("first", lambda: done.append("first"))
        ahead.start("second", lambda: (done.append("second"), get_ident())[1])
        assert ahead.result("second", lambda: 0) != get_ident()
        assert ahead.result("second", lambda: 0) != 0
        assert done == ["first", "second"]
        assert ahead.result("never begun", lambda: "now") == "now"


def test_a_later_piece_may_use_an_earlier_one() -> None:
    with Ahead(beside=True) as ahead:
        ahead.start("rows", lambda: 20)
        ahead.start("figure", lambda: ahead.result("rows", lambda: 0) + 1)
        assert ahead.result("figure", lambda: 0) == 21


def test_errors_come_out_where_the_result_is_asked_for() -> None:
    with Ahead(beside=True) as ahead:
        ahead.start("wrong", lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            ahead.result("wrong", lambda: 1)


def test_work_ends_at_its_next_check_when_its_caller_leaves() -> None:
    begun, ended, interval = Event(), Event(), sys.getswitchinterval()

    def endless() -> None:
        begun.set()
        try:
            while True:
                ahead.check()
        except Stopped:
            ended.set()

    with Ahead(beside=True) as ahead:
        ahead.start("endless", endless)
        ahead.start("after it", endless)
        assert begun.wait(600)
    assert ended.wait(600)
    assert sys.getswitchinterval() == interval
