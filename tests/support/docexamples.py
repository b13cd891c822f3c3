"""Examples of docstrings: run, and compared with what they show."""

import doctest
import re

import numpy

import mxnet

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Close(doctest.OutputChecker):
    """Numbers may differ by rounding: the last digit depends on the processor's vector units."""

    number = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=e))(?:e[-+]?\d+)?")

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        wanted, found = ([float(x) for x in self.number.findall(text)] for text in (want, got))
        if len(wanted) != len(found) or not numpy.allclose(wanted, found, rtol=2e-6, atol=1e-7):
            return False
        blanks = (re.sub(r"\s+", "", self.number.sub("#", text)) for text in (want, got))
        return len(set(blanks)) == 1


def names():
    """What an example may use without importing it."""
    return {"mx": mxnet, "np": mxnet.np, "npx": mxnet.npx, "autograd": mxnet.autograd}


def runner():
    return doctest.DocTestRunner(Close(), optionflags=FLAGS, verbose=False)


def failures(doc, name):
    """What went wrong in the examples of a docstring."""
    printed = []
    runner().run(doctest.DocTestParser().get_doctest(doc, names(), name, None, 0), out=printed.append)
    return "".join(printed)
