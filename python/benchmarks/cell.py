"""The process of one measurement, which ``run.py`` starts.

Processes that a library spawns import this file, so it imports nothing by itself.
"""

if __name__ == "__main__":
    import measurements

    measurements.main()
