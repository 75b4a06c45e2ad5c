"""The data sets beside the repository, by name; the fixture `data_dir` says where they are."""

DATA_SETS = (
    "b767_flutter",
    "beam",
    "building",
    "cdplayer",
    "drum_boiler",
    "heat",
    "helicopter_v73",
    "iss",
    "j100_jet_engine",
    "lf10_beam_descriptor",
    "mr_demo",
    "pde",
)
