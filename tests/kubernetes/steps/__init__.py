"""What is tried: functions in the order of their modules, each with what is expected as its first line. They give what was seen."""

STEPS = {}


def step(function):
    """A step, called by its function's name."""
    STEPS[function.__name__.replace("_", "-")] = function
    return function


def expect(condition, seen):
    from fleet import Failed

    if not condition:
        raise Failed(seen)


from steps import installing, working, failing, losing, changing, objects  # noqa: E402,F401
