"""ClusterLoader2's template functions, called through templates as configs call them."""

from __future__ import annotations

import random
from pathlib import Path

import gotpl
import pytest

from harness.clusterloader.functions import template_functions

DATA = {"Nodes": 100, "Half": 0.5, "Text": "7", "Yes": True, "List": [1, 2], "Nil": None}


def render(source: str, seed: int = 1, root: Path = Path()) -> str:
    return str(gotpl.render(source, DATA, functions=template_functions(random.Random(seed), root)))


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("{{AddInt 1 2 3}}", "6"),
        ("{{AddInt 1.6 1.6}}", "3"),
        ("{{AddFloat 1 .Half}}", "1.5"),
        ("{{SubtractInt 5 7}}", "-2"),
        ("{{SubtractFloat 5 .Half}}", "4.5"),
        ("{{MultiplyInt .Nodes .Half 2}}", "100"),
        ("{{MultiplyFloat 2.5 (DivideFloat .Nodes 5000)}}", "0.05"),
        ("{{DivideInt 7 2}}", "3"),
        ("{{DivideInt -7 2}}", "-3"),
        ("{{DivideFloat 7 2}}", "3.5"),
        ("{{DivideFloat 8 2}}", "4"),
        ("{{Ceil 1.2}}", "2"),
        ("{{Mod 23 20}} {{Mod -1 20}}", "3 -1"),
        ("{{MaxInt 1 .Nodes 3}} {{MinInt .Nodes 3}}", "100 3"),
        ("{{MaxFloat 1 .Half}} {{MinFloat 1 .Half}}", "1 0.5"),
        ("{{AddInt .Text 1}}", "8"),
        ("{{DivideFloat 7 2 | AddInt 180}}", "183"),
        ('{{DefaultParam .Absent 5}} {{DefaultParam .Nil "x"}} {{DefaultParam .Nodes 5}}', "5 x 100"),
        ('{{DefaultParam .Absent ""}}|{{DefaultParam .Yes false}}', "|true"),
        ("{{$x := DefaultParam .Absent nil}}{{if $x}}yes{{else}}no{{end}}", "no"),
        ('{{IfThenElse (ge .Nodes 5000) "60s" "15s"}}', "15s"),
        ("{{range $i := Loop 3}}{{$i}},{{end}}", "0,1,2,"),
        ("{{range Seq 2}}{{.}}{{end}}{{range SliceOfZeros 2}}{{.}}{{end}}", "0000"),
        ('{{range StringSplit "a,b"}}<{{.}}>{{end}}', "<a><b>"),
        ('{{Concat "a" "/" "b"}} {{Lowercase "AbC"}}', "a/b abc"),
        ('{{YamlQuote "" 4}}', '""\n        '.replace('""', "''")),
        ('{{YamlQuote "plain" 1}}', "plain\n  "),
        ("{{if not (eq (Mod .Nodes 20) 0 19)}}x{{end}}", ""),
        ('{{$a := 1}}{{if .Yes}}{{$a = 2}}{{end}}{{printf "%d-%s" $a "b"}}', "2-b"),
        ("{{index .List 1}} {{len .List}}", "2 2"),
    ],
)
def test_a_function_gives_what_go_gives(source: str, result: str) -> None:
    assert render(source) == result


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{{AddInt .Absent 1}}", "cannot cast <nil> to float64"),
        ('{{AddInt "x" 1}}', "cannot cast 'x' to float64"),
        ("{{AddInt .Yes 1}}", "cannot cast True to float64"),
        ("{{DivideInt 1 0}}", "division by zero"),
        ("{{Mod 1 0}}", "integer divide by zero"),
        ("{{MaxInt}}", "maximum undefined"),
        ("{{MinInt}}", "minimum undefined"),
        ("{{IfThenElse 1 2 3}}", "got: int want: bool"),
        ("{{Concat .Absent}}", "got: <nil> want: string"),
        ("{{StringSplit 5}}", "got: int want: string"),
        ('{{YamlQuote "a" "b"}}', "got: string want: int"),
        ('{{IncludeFile "no-such-file"}}', "unable to read file"),
        ("{{DefaultParam 1}}", "wrong number of args"),
    ],
)
def test_a_function_refuses_what_go_refuses(source: str, problem: str) -> None:
    with pytest.raises(gotpl.TemplateError, match=problem.replace("(", r"\(")):
        render(source)


def test_quoted_yaml_of_several_lines_stays_one_value() -> None:
    functions = template_functions(random.Random(1), Path())
    data = {"Text": "- verb: PATCH\n  threshold: 3s\n"}
    text = gotpl.render("a:\n  b: {{YamlQuote .Text 2}}\n  c: 1\n", data, functions=functions)
    from harness.documents.yamltext import first_document

    assert first_document(text) == {"a": {"b": "- verb: PATCH\n  threshold: 3s\n", "c": 1}}


def test_random_functions_follow_the_seed_and_stay_in_range() -> None:
    source = "{{RandData 8}} {{RandInt 3}} {{RandIntRange 5 9}} {{RandIntRange 9 5}}"
    assert render(source, 1) == render(source, 1) != render(source, 2)
    data, small, middle, empty_range = render(source).split()
    assert len(data) == 8
    assert data.isalnum()
    assert 0 <= int(small) <= 3
    assert 5 <= int(middle) <= 9
    assert empty_range == "9"


def test_seeded_data_depends_on_its_seed_alone() -> None:
    source = '{{RandDataWithSeed 20 "a"}}'
    assert render(source, 1) == render(source, 2)
    assert len(render(source)) == 20
    assert render(source) != render('{{RandDataWithSeed 20 "b"}}')


def test_files_are_included_relative_to_the_config(tmp_path: Path) -> None:
    (tmp_path / "part.txt").write_text("hello")
    assert (
        render('{{IncludeFile "part.txt"}} {{IncludeEmbedFile "/part.txt"}}', root=tmp_path) == "hello hello"
    )
