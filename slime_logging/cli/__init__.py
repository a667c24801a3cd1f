"""The `slime-logging` command: one module a command, loaded when it is run."""


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from slime_logging.cli.app import app

    app()
