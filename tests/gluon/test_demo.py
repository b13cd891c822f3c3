"""The demo learns, saves, and draws."""

import xml.etree.ElementTree as ElementTree

import pytest

from mxnet import demo


@pytest.mark.slow
def test_demo_learns_digits(tmp_path, capsys):
    assert demo.main(["--output", str(tmp_path), "--epochs", "6"]) >= 0.97
    printed = capsys.readouterr().out
    assert printed.startswith("test accuracy: 0.9")
    assert "predictions are identical" in printed
    assert (tmp_path / "digits.safetensors").stat().st_size > 100_000
    drawing = ElementTree.parse(tmp_path / "digits.svg").getroot()
    # Eight digits of 64 pixels and the background.
    assert len(drawing.findall("{*}rect")) == 8 * 64 + 1
    assert len(drawing.findall("{*}polyline")) == 1


@pytest.mark.parametrize("arguments", [["--epochs", "0"], ["--batch-size", "5000"]])
def test_senseless_arguments_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        demo.main(arguments)
    assert "--batch-size from 1 to 1437" in capsys.readouterr().err
