"""A real browser without a window, driven by its own driver; nothing is downloaded, nothing is sent."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync")
FLAGS += ("disable-background-networking", "disable-component-update")
PAPERS = {"A4": (21.0, 29.7), "Letter": (21.59, 27.94)}
"""Width and height in centimetres."""


class Browser:
    """One page at a time, in a window of a chosen size."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self._driver = driver
        self._folder = folder

    def open(
        self, path: Path, width: int = 1280, height: int = 900, *, is_dark: bool = False
    ) -> None:
        """Show a file."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self._driver.get(f"file://{path}")

    def ask(self, script: str, *arguments: object) -> Any:
        """What JavaScript says; it is run by the driver, not by the page, whose policy stays."""
        return self._driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """What the browser's console has said since the last time."""
        return [entry["message"] for entry in self._driver.get_log("browser")]

    def print(self, paper: str) -> bytes:
        """The page on paper, without backgrounds, as most people print: a PDF."""
        from selenium.webdriver.common.print_page_options import PrintOptions

        options = PrintOptions()
        options.page_width, options.page_height = PAPERS[paper]
        options.background = False
        return base64.b64decode(self._driver.print_page(options))

    @contextmanager
    def seen(self, name: str) -> Iterator[None]:
        """What is asked inside; where it fails, the failure names a picture of the page."""
        try:
            yield
        except BaseException:
            picture = self._folder / f"{name}.png"
            picture.write_bytes(base64.b64decode(self._driver.get_screenshot_as_base64()))
            print(f"the page as it was: {picture}")
            raise


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser that keeps its pictures in a folder; skips where there is none, but not in CI."""
    found = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
    if not all(found):
        assert not os.environ.get("CI"), "chromium and chromedriver belong to CI (.ci/run)"
        pytest.skip("no chromium and chromedriver here")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(found[0])
    for flag in (*FLAGS, f"user-data-dir={folder / 'profile'}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(found[1]))
    try:
        yield Browser(driver, folder)
    finally:
        driver.quit()
