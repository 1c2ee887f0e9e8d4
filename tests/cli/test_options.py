"""Options of ``maxmargin train`` and the parameters of estimators: the same names, defaults and values."""

import argparse
import inspect
import re
from importlib import import_module

import pytest

from maxmargin.cli import _parser, main, options
from maxmargin.cli.signatures import Parameter, fit_options, parameters
from maxmargin.cli.tasks import TASKS, task_of

TEXTS = {"rows and columns such as 4x6": ("4x6", (4, 6)), "whole numbers with commas such as 1,2": ("1,3", (1, 3))}
TEXTS |= {
    "numbers with commas such as 0.1,1": ("0.1,1", (0.1, 1.0)),
    "a whole number": ("3", 3),
    "a number": ("0.25", 0.25),
    "text": ("x", "x"),
    "a label": ("x", "x"),
    "yes or no": ("no", False),
}


def parse(task, *arguments, command="train"):
    given = {"train": ["x", "-o", "m", "--task", task], "report": ["m", "-o", "r"]}.get(command, ["m", "x"])
    return _parser().parse_args([command, *given, *arguments])


@pytest.fixture(params=TASKS.values(), ids=lambda task: task.name)
def task(request):
    return request.param


def test_source_text_says_what_the_class_says(task):
    cls = getattr(import_module(f"maxmargin.{task.home}"), task.estimator)
    expected = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    assert {name: p.default for name, p in parameters(task.home, task.estimator).items()} == expected
    known = inspect.signature(cls.fit).parameters.values()
    assert fit_options(task.home, task.estimator) == {p.name for p in known if p.kind is p.KEYWORD_ONLY}
    assert task_of(cls()) is task


def test_every_option_reaches_its_parameter(task):
    arguments, expected = [], {}
    for name, parameter in task.settings().items():
        flag = options.table("train")[name].flag
        if name == "parts":
            arguments, expected[name] = [*arguments, flag], "shared"
        elif parameter.is_switch:
            arguments, expected[name] = [*arguments, flag], not parameter.default
        else:
            words = [(word, word) for word in parameter.words]
            text, expected[name] = [*words, *(TEXTS[said] for said, _ in parameter.forms)][-1]
            arguments += [flag, text]
    args = parse(task.name, *arguments)
    settings = options.resolve(args, task)
    assert settings == expected
    made = task.make(**settings).get_params(deep=False)
    assert {name: made[name] for name in expected} == expected
    assert options.resolve(parse(task.name), task) == {}  # what is not said is left to the estimator


@pytest.mark.parametrize("command", ["train", "predict", "certify", "report"])
def test_every_option_of_another_task_is_refused(task, command):
    for option in options.table(command).values():
        if task.name not in option.owners:
            p = option.first
            value = [] if option.is_switch else [p.words[0] if p.words else TEXTS[p.forms[-1][0]][0]]
            with pytest.raises(ValueError, match=rf"{option.flag} is for --task .*this is --task {task.name}. Leave"):
                options.said(parse(task.name, option.flag, *value, command=command), task)


def test_only_objects_and_arrays_have_no_option():
    without = {
        (task.name, name)
        for task in TASKS.values()
        for name in parameters(task.home, task.estimator).keys() - task.settings().keys()
    }
    general = {"n_jobs", "random_state", "verbose", "warm_start", "regularizer"}
    rest = {(task, name) for task, name in without if name not in general}
    assert rest == {("classify", "cost"), ("detect", "negative_parts_from"), ("sequence", "features")}


def test_every_option_says_what_it_is_for():
    for option in options.table("train").values():
        said = option.help()
        assert said and "`" not in said and ":class:" not in said


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int or None", "all", None),
        ("int, str or None", "512MB", "512MB"),
        ("int, str or None", "512", 512),
        ('"auto" or float', "0.5", 0.5),
        ('"auto" or bool', "no", False),
        ("int or (int, int)", "4", 4),
        ("label or None", "2", 2.0),
        ('None, "observed" or iterable of (label, label)', "observed", "observed"),
    ],
)
def test_text_is_read_as_the_docstring_says(kind, text, value):
    assert Parameter("x", None, kind).read(text) == value


@pytest.mark.parametrize(
    ("kind", "text"), [("float", "nan"), ("int", "1.5"), ("int or (int, int)", "4x"), ('{"a"}', "b")]
)
def test_text_that_is_something_else_is_refused(kind, text):
    with pytest.raises(argparse.ArgumentTypeError, match="must be"):
        Parameter("x", None, kind).read(text)


def test_values_of_other_tasks_are_refused():
    for arguments, said in (
        (["--task", "regress", "--loss", "hinge"], "--loss hinge is not for --task regress: it must be epsilon_insens"),
        (
            ["--task", "detect", "--bound", "coherent"],
            "--bound coherent is not for --task detect: it must be cccp, gmm",
        ),
        (["--task", "scene", "--features", "7"], "--features 7 is not for --task scene: it must be words, cnn"),
        (["--task", "parts", "--features", "words"], "--features words is not for --task parts: it must be hog, cnn"),
        (["--task", "rank", "--features", "hog"], "--features hog is not for --task rank: it must be a whole number"),
        (["--task", "detect", "--components", "all"], "--components all is not for --task detect"),
        (["--task", "scene", "--training", "joint"], "--training joint is not for --task scene"),
    ):
        with pytest.raises(ValueError, match=said):
            options.said(parse(*arguments[1:]), TASKS[arguments[1]])


def test_messages_name_options():
    translated = options.translator(options.table("train").values())
    assert translated("pool_size must be at least n_parts=20.") == "--pool must be at least --parts 20."
    assert translated("The end must be there; a label must be text.") == "The end must be there; a label must be text."


def test_help_can_be_about_one_task(task, capsys):
    assert main(["train", "--task", task.name, "--help"]) == 0
    shown = set(re.findall(r"^  (?:-C X, )?(--[\w-]+)", capsys.readouterr().out, flags=re.MULTILINE))
    for name, option in options.table("train").items():
        assert (option.flags[-1] in shown or option.flags[0] in shown) == (task.name in option.owners), name
