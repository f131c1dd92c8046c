"""What is tried: functions in the order of their modules, each with what is expected as its first line. They give what was seen."""

from fleet import Failed

STEPS = {}


def step(function):
    """A step, called by its function's name."""
    STEPS[function.__name__.replace("_", "-")] = function
    return function


def on_own_nodes(function):
    """A step that does to nodes what only their owner can, or needs volumes that all nodes see."""
    function.on_own_nodes = True
    return step(function)


def expect(condition, seen):
    if not condition:
        raise Failed(seen)


from steps import installing, working, failing, losing, changing, objects, pretending  # noqa: E402,F401
