"""Dependency trees from CoNLL-U files."""

import re

import pytest

import maxmargin as mm
from maxmargin.data import DataError, read_trees

TEXT = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\t_\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\t_\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\t_\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgo\t_\tVERB\t_\t_\t_\t_\t_\t_

1\tGo\t_\tVERB\tVB\t_\t0\troot\t_\t_
"""


def test_words_tags_heads_and_relations_are_read(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(TEXT)
    X, Y = read_trees(path)
    assert X == [[("do", "AUX"), ("n't", "PART"), ("go", "VERB")], [("Go", "VERB")]]
    assert Y == [[(3, "aux"), (3, "advmod"), (0, "root")], [(0, "root")]]
    assert read_trees([path, path], ["FORM"])[0][3] == ["Go"]
    parser = mm.StructuralSVM(mm.models.DependencyTree(), C=10.0, random_state=0).fit(X, Y)
    assert parser.predict(X) == Y


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\t3\taux", "\t_\taux", r"train\.conllu, line 3 has '_' for the number of a head"),
        ("\t3\taux", "\t4\taux", r"line 3 has '4'.*a sentence of 3 tokens"),
    ],
)
def test_heads_that_are_none_are_named_with_their_line(tmp_path, old, new, message):
    path = tmp_path / "train.conllu"
    path.write_text(TEXT.replace(old, new))
    with pytest.raises(DataError, match=message):
        read_trees(path)


def test_columns_are_asked_for_in_a_list(tmp_path):
    path = tmp_path / "train.conllu"
    path.write_text(TEXT)
    with pytest.raises(DataError, match=re.escape("columns must be a list")):
        read_trees(path, "FORM")
    with pytest.raises(DataError, match="tree one of two columns"):
        read_trees(path, tree=["HEAD"])
