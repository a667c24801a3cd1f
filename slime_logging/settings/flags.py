"""Our flags in a parser, and what was asked for that nothing heard."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence

from slime_logging.settings.option import PREFIX
from slime_logging.settings.options import OPTIONS, OTHER_VARIABLES


def add_tracking_arguments(parser: ArgumentParser, *, only_ours: bool = False) -> ArgumentParser:
    """Add slime's tracking flags and ours to a parser; a flag that it already has is left as it is.

    Args:
        parser: any parser, slime's own included.
        only_ours: leave slime's flags out. For slime's own hook, which adds slime's flags after
            ours: `parse_args(functools.partial(add_tracking_arguments, only_ours=True))`.

    Returns:
        The same parser.
    """
    group = parser.add_argument_group(
        "tracking", "One run for the whole job; nothing happens unless a tracker is switched on."
    )
    known = set(parser._option_string_actions)
    for option in OPTIONS:
        if option.flag not in known and not (only_ours and option.is_slimes):
            group.add_argument(option.flag, help=option.help, **option.keywords)
    return parser


def unheard(args: object, argv: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """What somebody asked for and nothing heard, with the fix: a flag of ours that a parser which
    ignores what it does not know, as slime's does, dropped; a misspelt variable.

    Args:
        args: what the parser made of the command line.
        argv: the command line.
        environ: the environment.
    """
    words = {word.partition("=")[0].replace("--no-", "--", 1) for word in argv}
    for option in OPTIONS:
        if option.flag in words and not option.is_slimes and not hasattr(args, option.name):
            yield (
                f"{option.flag} has no effect: the job's parser does not know it. Set"
                f" {option.variables[0]} instead, or give the parser our flags"
                " (slime_logging.add_tracking_arguments)."
            )
    known = {*OTHER_VARIABLES, *(name for option in OPTIONS for name in option.variables)}
    for name in environ:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "."
            yield f"the environment variable {name} is none of ours{hint}"
