"""Hypothesis: columns are found by their names without units, and what messages suggest works as it is written."""

import io
import re

import numpy as np
import pytest

from ltinet import FileFormatError, read_table

RIG = "time (s),valve (%),T (K),flow [l/s],note\n0,1,2,3,ok\n1,4,5,6,ok\n2,7,8,9,off\n"


def read(text: str, **options: object):
    return read_table(io.BytesIO(text.encode()), **options)


@pytest.mark.parametrize("name", ["valve", "Valve", "valve (%)", "VALVE (%)"])
def test_a_unit_may_be_left_out(name: str) -> None:
    assert read(RIG, columns=[name, "flow"]).names == ("valve (%)", "flow [l/s]")
    assert read(RIG, time="time", columns="T").names == ("T (K)",)


def test_a_name_that_fits_two_columns_is_refused() -> None:
    with pytest.raises(FileFormatError, match=r"'T' fits 'T \(K\)' and 'T \(°C\)'"):
        read("t,T (K),T (°C)\n0,1,2\n", columns="T")


@pytest.mark.parametrize("name", ["val", "vlave", "valve %"])
def test_other_names_get_a_suggestion(name: str) -> None:
    with pytest.raises(FileFormatError, match=r"no column .*; did you mean 'valve \(%\)'\?"):
        read(RIG, columns=name)


def test_several_names_in_one_text_are_to_be_a_list() -> None:
    with pytest.raises(FileFormatError, match=r'give several as a list: columns=\["valve", "T"\]'):
        read(RIG, columns="valve,T")


@pytest.mark.parametrize("header", ["time (s),valve,T", "Messzeitpunkt,T,valve"])
def test_a_temperature_is_no_time_beside_one(header: str) -> None:
    stamped = header.startswith("M")
    rows = [f"2026-03-01T08:00:0{k}" if stamped else str(k) for k in range(3)]
    table = read(f"{header}\n" + "".join(f"{t},{300 + k},{k}\n" for k, t in enumerate(rows)))
    assert set(table.names) == {"valve", "T"}
    np.testing.assert_array_equal(table.t, [0.0, 1.0, 2.0])


def test_a_temperature_alone_is_asked_about() -> None:
    text = "valve,T\n1,300\n2,301\n"
    with pytest.raises(FileFormatError, match=r'no column is called t or time .*time="1"'):
        read(text)
    assert read(text, dt=0.5).names == ("valve", "T")
    assert read(text, time="T").names == ("valve",)


def test_units_below_a_temperature_and_a_time() -> None:
    table = read("t;T;u\nms;K;V\n0;300;1\n10;301;2\n")
    assert table.names == ("T (K)", "u (V)")
    np.testing.assert_array_equal(table.t, [0.0, 0.01])
    np.testing.assert_array_equal(read("T;u\nms;V\n0;1\n10;2\n").t, [0.0, 0.01])


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("x,u\n0,1\n1,2\n", "time"),
        ("x,u\n0,1\n1,2\n", "dt"),
        ("t,Time,u\n0,0,1\n1,1,2\n", "time"),
        ("t;u\n0;1,234\n", "decimal"),
        ("t,u,u\n0,1,2\n", "columns"),
        ("t,u,\n0,1,2\n", "columns"),
        ("t (cycles),u\n0,1\n", "time_unit"),
        ("t,u\n0,1\n1,\n", "gaps"),
        ("0,1\n1,2\n", "header"),
    ],
)
def test_what_a_message_suggests_is_python_that_works(text: str, option: str) -> None:
    with pytest.raises(FileFormatError) as caught:
        read(text)
    suggestion = re.search(rf'\b{option}=("[^"]*"|\[[^\]]*\]|[\w.]+)', str(caught.value))
    assert suggestion is not None
    more = {"time": 1} if option == "header" else {}
    read(text, **{option: eval(suggestion[1])}, **more)  # noqa: S307 - a literal of the library's own message


@pytest.mark.parametrize("dt", ["0.5", 0.5, np.float32(0.5)])
def test_steps_are_numbers_or_their_text(dt: object) -> None:
    np.testing.assert_array_equal(read("x,u\n0,1\n1,2\n", dt=dt).t, [0.0, 0.5])


@pytest.mark.parametrize("dt", ["0,5", "fast", "nan", -1.0, [1.0], True])
def test_other_steps_are_refused(dt: object) -> None:
    with pytest.raises(FileFormatError, match=r"dt is .*; it must be a positive time step"):
        read("x,u\n0,1\n1,2\n", dt=dt)


def test_a_step_in_place_of_a_time_column_is_noted():
    pd = pytest.importorskip("pandas")
    text = b"t (s),u1\n0,1\n0.1,2\n3.2,4\n"
    for source in (io.BytesIO(text), pd.read_csv(io.BytesIO(text))):
        table = read_table(source, dt=1.0)
        assert "the times in 't (s)' are not used: rows at steps of 1" in table.notes
        assert table.names == ("u1",)
    assert read_table(io.BytesIO(text)).notes == ()


GERMAN = """# Export
{};Ventil;Temperatur;Bemerkung
;%;K;
28.03.2026 08:00:00,000;29,5;293,136;
28.03.2026 08:00:00,100;29,5;293,126;
28.03.2026 08:00:00,200;29,5;293,133;
"""


@pytest.mark.parametrize("name", ["Datum Uhrzeit", "Datum und Uhrzeit", "Datum/Uhrzeit", "Date and time"])
def test_units_below_a_name_of_dates_and_times(name: str) -> None:
    table = read(GERMAN.format(name), columns=["Ventil", "Temperatur"])
    assert table.names == ("Ventil (%)", "Temperatur (K)")
    np.testing.assert_array_equal(table.values[:, 1], [293.136, 293.126, 293.133])


def test_the_decimal_mark_may_come_from_another_column() -> None:
    np.testing.assert_array_equal(read(GERMAN.format("Zeit"), columns="Temperatur").values[0], [293.136])


def test_messages_name_the_header_and_a_wrong_delimiter() -> None:
    with pytest.raises(FileFormatError, match=r"\(header: line 3\) has no column 'Ventil'"):
        read("# a\nVentil;Temp;Dauer\n;%;K\n0;1;2\n1;2;3\n", columns="Ventil", time="1")
    with pytest.raises(FileFormatError, match="single column with"):
        read("t;u\n0;a b\n1;c d\n", delimiter=",")
    with pytest.raises(FileFormatError, match="'OVER' is not a real number; correct it"):
        read("t,u\n0,1\n1,OVER\n2,3\n")
