"""The time of `import ndpool`, each in a fresh process. The goal: at most 60 ms over `import numpy`."""


class Import:
    # asv runs the string that these return in a new interpreter, once a sample.
    number = 1

    def timeraw_numpy(self):
        return "import numpy"

    def timeraw_numpy_and_ndpool(self):
        return "import numpy, ndpool"
