"""Boxes mean the same in every form that users have them in, and each mistake in them is told where it is."""

import csv
import io
import json
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from maxmargin.vision.detection.annotations import annotated
from maxmargin.vision.detection.image_names import ImageNames
from maxmargin.vision.detection.photos import read_all
from maxmargin.vision.detection.records import CORNERS, INCLUSIVE, SIZES, Record, corners
from maxmargin.vision.images import ImageError

NAMES = ["a.jpg", "b.jpg", "c.jpg"]
CATS = [[(10, 5, 30, 25), (0, 0, 8, 9)], [], [(20, 20, 41, 39)]]
DIFFICULT = [[False, True], [], [False]]
DOG = (1, 2, 11, 12)  # in b.jpg


@pytest.fixture
def folder(tmp_path):
    images = tmp_path / "JPEGImages"
    images.mkdir()
    for name in NAMES:
        (images / name).touch()
    return images


def rows(dog=True):
    found = [
        {"image": name, "xmin": x, "ymin": y, "xmax": u, "ymax": v, "label": "cat", "difficult": int(flag)}
        for name, boxes, flags in zip(NAMES, CATS, DIFFICULT, strict=True)
        for (x, y, u, v), flag in zip(boxes, flags, strict=True)
    ]
    x, y, u, v = DOG
    dogs = [{"image": "b.jpg", "xmin": x, "ymin": y, "xmax": u, "ymax": v, "label": "dog", "difficult": 0}]
    return found + (dogs if dog else [])


def coco_content():
    annotations = [
        {"id": 10 + j, "image_id": NAMES.index(row["image"]), "category_id": 1 + (row["label"] == "dog"),
         "bbox": [row["xmin"], row["ymin"], row["xmax"] - row["xmin"], row["ymax"] - row["ymin"]],
         "iscrowd": row["difficult"]}
        for j, row in enumerate(rows())
    ]  # fmt: skip
    return {
        "images": [{"id": i, "file_name": name} for i, name in enumerate(NAMES)],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}, {"id": 3, "name": "cow"}],
    }


def coco_file(tmp_path, content=None):
    path = tmp_path / "boxes.json"
    path.write_text(json.dumps(coco_content() if content is None else content))
    return path


def voc_object(row):
    part = "<part><name>head</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>2</xmax><ymax>2</ymax></bndbox></part>"
    return (
        f"<object><name>{row['label']}</name><difficult>{row['difficult']}</difficult>{part}<bndbox>"
        f"<xmax>{row['xmax']}</xmax><xmin>{row['xmin'] + 1}</xmin><ymin>{row['ymin'] + 1}</ymin>"
        f"<ymax>{row['ymax']}</ymax></bndbox></object>"
    )


def voc_folder(tmp_path):
    place = tmp_path / "Annotations"
    place.mkdir()
    for name in NAMES:
        objects = "".join(voc_object(row) for row in rows() if row["image"] == name)
        (place / name).with_suffix(".xml").write_text(f"<annotation><filename>{name}</filename>{objects}</annotation>")
    return place


def csv_file(tmp_path, table=None, delimiter=",", encoding="utf-8", name="boxes.csv"):
    table = rows() if table is None else table
    text = io.StringIO()
    writer = csv.DictWriter(text, list(table[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(table)
    path = tmp_path / name
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def check_same(found, folder, ignored=DIFFICULT, label="cat", order=(0, 1, 2)):
    """Whether these are the cats; ``order`` says which image of ``NAMES`` comes where."""
    assert [os.path.realpath(one) for one in found.images] == [os.path.realpath(folder / NAMES[k]) for k in order]
    assert len(found) == len(found.boxes) == len(found.ignored) == 3
    for k, boxes, flags in zip(order, found.boxes, found.ignored, strict=True):
        wanted, wanted_flags = CATS[k], ignored[k]
        assert boxes.dtype == np.float64 and flags.dtype == bool
        assert boxes.shape == (len(wanted), 4)
        assert boxes.tolist() == [list(map(float, box)) for box in wanted]
        assert flags.tolist() == wanted_flags
    assert found.label == label


def none_ignored():
    return [[False] * len(boxes) for boxes in CATS]


def test_lists(folder):
    paths = [folder / name for name in NAMES]
    ways = [
        (paths, [np.array(CATS[0]), None, CATS[2][0]]),
        (np.array(list(map(str, paths))), [CATS[0], [], np.array(CATS[2])]),
        (folder, [CATS[0], np.empty((0, 4)), CATS[2]]),
        (str(folder / "*.jpg"), CATS),
    ]
    for images, boxes in ways:
        check_same(annotated(images, boxes), folder, none_ignored(), None)
    check_same(annotated(paths, CATS, label="cat"), folder, none_ignored())


def test_coco(folder, tmp_path):
    path = coco_file(tmp_path)
    check_same(annotated(folder, path, label="cat"), folder)
    check_same(annotated(tmp_path, path, label="cat"), folder)  # at any depth
    check_same(annotated([folder / name for name in NAMES], path, label="cat"), folder)
    beside = folder / "boxes.json"
    beside.write_bytes(path.read_bytes())
    check_same(annotated(None, beside, label="cat"), folder)
    check_same(annotated(beside, label="cat"), folder)
    (folder / "unlisted.jpg").touch()  # COCO lists its images: this one nobody looked at
    check_same(annotated(folder, path, label="cat"), folder)


def test_voc(folder, tmp_path):
    place = voc_folder(tmp_path)
    check_same(annotated(None, place, label="cat"), folder)
    check_same(annotated(folder, str(place), label="cat"), folder)
    one = annotated(None, place / "a.xml")  # cats alone
    assert len(one) == 1 and one.label == "cat" and one.boxes[0].tolist() == [[10, 5, 30, 25], [0, 0, 8, 9]]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv(folder, tmp_path, delimiter, encoding):
    path = csv_file(tmp_path, delimiter=delimiter, encoding=encoding)
    check_same(annotated(folder, path, label="cat"), folder)
    check_same(annotated([folder / name for name in NAMES], path, label="cat"), folder)
    without = [{**row, "image": row["image"][0]} for row in rows()]
    check_same(annotated(folder, csv_file(tmp_path, without), label="cat"), folder)


def test_only_what_a_table_names_where_no_images_are_given(folder):
    table = [{**row, "image": row["image"][0]} for row in rows()]  # beside the file
    check_same(annotated(None, csv_file(folder, table), label="cat"), folder, order=[0, 2, 1])
    found = annotated(None, csv_file(folder, rows(dog=False)))
    assert [os.path.basename(one) for one in found.images] == ["a.jpg", "c.jpg"]


def test_tables_in_memory(folder):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    whole = [{**row, "image": str(folder / row["image"])} for row in rows()]
    for make in (pandas.DataFrame, lambda table: pyarrow.table(pandas.DataFrame(table)), list, tuple):
        check_same(annotated(folder, make(rows()), label="cat"), folder)
        check_same(annotated(make(whole), label="cat"), folder, order=[0, 2, 1])
    gap = pandas.DataFrame([*rows(dog=False), {"image": "b.jpg"}])  # NaN in all other columns
    for table in (gap, gap.convert_dtypes(), pyarrow.Table.from_pandas(gap)):
        check_same(annotated(folder, table), folder)


@pytest.mark.parametrize(
    "names",
    [
        ("file", "x_min", "y_min", "x_max", "y_max"),
        ("File Name", "X1", "Y1", "X2", "Y2"),
        ("filename", "x", "y", "w", "h"),
        ("image_path", "xmin", "ymin", "Width", "Height"),
    ],
)
def test_names_of_columns(folder, names):
    sizes = names[-1].lower() in ("h", "height")
    table = []
    for row in rows(dog=False):
        x, y, u, v = (row[edge] for edge in ("xmin", "ymin", "xmax", "ymax"))
        values = (row["image"], x, y, u - x, v - y) if sizes else (row["image"], x, y, u, v)
        table.append({**dict(zip(names, values, strict=True)), "is_crowd": row["difficult"], "class": "cat"})
    check_same(annotated(folder, table), folder)


def test_whole_numbers_are_classes_and_names(tmp_path):
    (tmp_path / "17.png").touch()
    (tmp_path / "18.png").touch()
    box = dict(zip(["x1", "y1", "x2", "y2"], [1, 2, 30, 40], strict=True))
    found = annotated(tmp_path, [{"image": 17.0, "class": 3.0, **box}, {"image": 18, "class": 4, **box}], label=3)
    assert found.label == "3" and [len(one) for one in found.boxes] == [1, 0]


@pytest.mark.parametrize(
    "name", ["a, b.jpg", 'a "b".jpg', "ä;ö.jpg", "a\nb.jpg", " a .jpg", "a\\b.jpg", "[a]*.jpg", "#.jpg"]
)
def test_files_with_odd_names_are_found(tmp_path, name):
    (tmp_path / name).touch()
    (tmp_path / "other.jpg").touch()
    path = csv_file(tmp_path, [{"image": name, "x1": 1, "y1": 2, "x2": 30, "y2": 40}])
    for images in (tmp_path, [tmp_path / "other.jpg", tmp_path / name], None):
        found = annotated(images, path)
        assert {os.path.basename(one): len(boxes) for one, boxes in zip(found.images, found.boxes, strict=True)} == {
            name: 1, **({} if images is None else {"other.jpg": 0})
        }  # fmt: skip


def test_names_mean_ends_of_paths():
    paths = ["/d/a/1.jpg", "/d/b/1.jpg", "/d/b/2.PNG"]
    names = ImageNames(None, paths)
    assert names.find("a/1.jpg", "") == names.find("./a/1", "") == names.find("d\\a\\1.jpg", "") == paths[0]
    assert names.find("2", "") == names.find("b/2.PNG", "") == names.find(" 2.PNG ", "") == paths[2]
    assert names.find("c/2.PNG", "") is None and names.find("xb/2.PNG", "") is None and names.find("", "") is None
    longer = ImageNames(None, ["/d/xb/3.jpg"])  # folders count whole
    assert longer.find("b/3.jpg", "") is None and longer.find("b/3", "") is None and longer.find("xb/3", "") is not None
    assert names.find("/elsewhere/2.PNG", "") is None
    with pytest.raises(ValueError, match=r"^t.csv, line 3: '1.jpg' may be /d/a/1.jpg or /d/b/1.jpg. Write more"):
        names.find("1.jpg", "t.csv, line 3")


def test_an_absolute_name_of_another_image_that_is_there_is_not_taken_for_one_that_is_given(tmp_path):
    for place in ("train", "val"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "1.jpg").touch()
    table = [{**rows()[0], "image": str(tmp_path / "train" / "1.jpg")}]
    with pytest.raises(ImageError, match="None of the 1 images that The table of boxes names is among the images"):
        annotated([tmp_path / "val" / "1.jpg"], table)
    path = csv_file(tmp_path / "val", [{**rows()[0], "image": "../train/1.jpg"}])
    with pytest.raises(ValueError, match=r"line 2: '../train/1.jpg' lies outside of .*val, and files may name images"):
        annotated(path)
    assert len(annotated([tmp_path / "train" / "1.jpg"], path)) == 1, "the user has named it"


# Mistakes


def fails(text, images, boxes, **options):
    with pytest.raises(ValueError) as caught:
        annotated(images, boxes, **options)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("box", "form"),
    [
        ([1, 2, 3], CORNERS), (7, SIZES), (["1", "2", "3", "4,5"], CORNERS), ([1, 2, 3, float("nan")], CORNERS),
        ([1, 2, float("inf"), 4], SIZES), ([30, 2, 30, 9], CORNERS), ([30, 20, 40, 9], CORNERS),
        ([30, 20, 0, 9], SIZES), ([5, 1, 4, 9], INCLUSIVE), ([None, "1", "4", "9"], INCLUSIVE),
    ],
)  # fmt: skip
def test_boxes_that_are_none(box, form):
    with pytest.raises(ValueError) as caught:
        corners(Record("a.jpg", box, form, None, False, "here"))
    assert str(caught.value).startswith(f"here: {box!r} is no box. A box is four finite numbers, {form}, with an area")


def test_one_pixel_is_a_box_where_the_last_is_included():
    assert corners(Record("a.jpg", [5, 1, 5, 1], INCLUSIVE, None, False, "here")) == (4, 0, 5, 1)


def test_mistakes_in_lists():
    images = list(np.zeros((2, 40, 60), np.uint8))
    box = [1, 2, 30, 40]
    fails("boxes is missing. It is a list", images, None)
    fails("There are 2 images, but boxes has 3 entries.", images, [box] * 3)
    fails("boxes[1] must have the shape (n, 4)", images, [box, [1, 2, 3]])
    fails("Got the shape (2, 5)", images, [box, np.ones((2, 5))])
    fails("boxes[1]: the boxes of an image are an array (n, 4)", images, [box, [[1, 2, 3, 4], [1, 2]]])
    fails("boxes[1][1] is [30.0, 2.0, 20.0, 40.0]: a box needs", images, [box, [box, [30, 2, 20, 40]]])
    fails("boxes[0][0] is [1.0, 2.0, nan, 40.0]", images, [[1, 2, np.nan, 40], box])
    fails("There are no positives: boxes has no box in any of the 2 images", images, [None, []])
    fails("All boxes in boxes lie between 0 and 1", images, [[0, 0.5, 1, 1], [0.2, 0.1, 0.3, 0.9]])
    fails("boxes is of type int", images, 3)
    fails("boxes is of type ndarray", images, np.array(3.0))
    fails("boxes[0]: the boxes of an image are an array (n, 4)", images, [[1, 2, 3, 10**400], box])
    fails("got DataFrame", pytest.importorskip("pandas").DataFrame(rows()), [box])
    fails("images is missing", None, [box])
    fails("There are no images: the list is empty.", [], [])
    for one in (images[0], np.zeros((40, 60, 3), np.uint8), 3):
        fails("images must be a folder, a list of files or of images, or an array", one, [box])
    fails("image 1 is of type int.", [images[0], 3], [box, box])
    fails("boxes names its images: give images as paths", images, rows(dog=False))
    known = annotated(images, [box, None])
    assert annotated(known) is known
    fails("images is Annotated already", known, [box, None])


def test_classes_are_chosen(folder, tmp_path):
    path = coco_file(tmp_path)
    said = f"{path} has boxes of 2 classes: cat (3), dog (1). A detector finds one: choose with label='cat'."
    fails(said, folder, path)
    fails(
        "has no boxes of the class 'dogs'; it has cat (3), dog (1). Perhaps you meant 'dog'.",
        folder,
        path,
        label="dogs",
    )
    fails("has no boxes of the class 'cow'; it has cat (3), dog (1).", folder, path, label="cow")
    fails("The table of boxes has boxes of 2 classes: cat (3), dog (1).", folder, rows())
    found = annotated(folder, path, label="dog")
    assert [len(one) for one in found.boxes] == [0, 1, 0] and found.boxes[1].tolist() == [list(DOG)]
    fails(" and 10 more.", folder, [{**rows()[0], "label": str(i)} for i in range(30)])


def test_boxes_of_other_classes_may_be_wrong(folder):
    table = [*rows(), {**rows()[0], "label": "dog", "xmax": 0}]
    check_same(annotated(folder, table, label="cat"), folder)
    fails("row 4 of the table of boxes: [10, 5, 0, 25] is no box", folder, table, label="dog")


def test_mistakes_in_coco(folder, tmp_path):
    def coco(**changes):
        return coco_file(tmp_path, {**coco_content(), **changes})

    path = tmp_path / "boxes.json"
    one = coco_content()["annotations"][0]
    for text, changes in (
        ("something is missing or wrong here: KeyError: '99'.", {"image_id": 99}),
        ("something is missing or wrong here: KeyError: '9'.", {"category_id": 9}),
        ("something is missing or wrong here: TypeError", {"bbox": None}),
        ("[1, 2] is no box.", {"bbox": [1, 2]}),
    ):
        fails(f"{path}, annotations[1]: {text}", folder, coco(annotations=[one, {**one, **changes}]))
    for changes in ({"images": [{"id": 0, "file_name": "a.jpg"}, {"id": 1}]}, {"categories": 3}, {"images": None}):
        fails(f"{path}: something is missing or wrong here", folder, coco(**changes))
    fails("There are no positives", folder, coco(annotations=[]))
    fails(f"{path}: something is missing or wrong here: TypeError", folder, coco_file(tmp_path, [1]))
    for content in (
        b"[" + b"1" * 5000 + b"]",
        b'{"images": [],\n "annotations": [}',
        b'{"images": "\xff"}',
        b"[" * 200_000,
    ):
        path.write_bytes(content)
        fails(f"{path} is not JSON that can be read", folder, path)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats() | st.text(max_size=3) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["id", "bbox", "name"]), inner),
    max_leaves=4,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["images", "annotations", "categories"]), st.integers(-1, 2), st.integers(0, 4), _JSON)
def test_any_other_thing_in_coco_is_a_mistake_that_is_told(folder, tmp_path, part, i, j, other):
    """Something is replaced by anything: a list, an entry of it, or a field; it is read, or the file is named."""
    content = coco_content()
    if i < 0:
        content[part] = other
    elif j >= len(content[part][i]):
        content[part][i] = other
    else:
        content[part][i][list(content[part][i])[j]] = other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = annotated(folder, coco_file(tmp_path, content), label="cat")
        except ValueError as error:
            assert str(tmp_path / "boxes.json") in str(error)
        else:
            assert all((one[:, :2] < one[:, 2:]).all() and np.isfinite(one).all() for one in found.boxes)


def test_mistakes_in_voc(folder, tmp_path):
    path = tmp_path / "a.xml"

    def voc(text):
        path.write_text(text)
        return path

    fails(
        f"{path} is not XML that can be read: mismatched tag: line 2",
        folder,
        voc("<annotation>\n<object></annotation>"),
    )
    fails(f"{path} is not XML", folder, voc(""))
    fails("is no VOC file: <annotation> is needed at its top, got <svg>.", folder, voc("<svg/>"))
    fails(f"{path}, object 1: <name> is missing", folder, voc("<annotation><object/></annotation>"))
    lacking = "<annotation><object><name>cat</name><bndbox><xmin>1</xmin></bndbox></object></annotation>"
    fails(f"{path}, object 1: ['1', None, None, None] is no box", folder, voc(lacking))
    fails("There are no positives", folder, voc("<annotation/>"))


def test_mistakes_in_csv(folder, tmp_path):
    path = tmp_path / "boxes.csv"
    head = "image,xmin,ymin,xmax,ymax,label\n"

    def table(text):
        path.write_bytes(text.encode("latin-1"))
        return path

    fails(f"{path}, line 1, has the columns []", folder, table(""))
    fails("There are no positives", folder, table(head))
    given = (
        f"{path}, line 1, has the columns ['a.jpg', '1', '2', '3', '4']. There must be one for the name of the image"
    )
    fails(given, folder, table("a.jpg,1,2,3,4\n"))
    fails("and four for the box", folder, table("image,xmin,ymin,xmax\na.jpg,1,2,3\n"))
    for text, lines in (
        ("line 3 has not as many fields", "a.jpg,1,2,3,4,cat\na.jpg,1,2,3,4\n"),
        ("line 2 has not as many fields", "a.jpg,1,2,3,4,cat,5\n"),
        ("line 4: ['1', '2', 'x', '4'] is no box", '"a\n.jpg",1,2,3,4,cat\na.jpg,1,2,x,4,cat\n'),
        ("line 2: ['1', '', '3', '4'] is no box", "a.jpg,1,,3,4,cat\n"),
        ("line 2: the column 'image' is empty", ",1,2,3,4,cat\n"),
        ("line 2: the column 'label' is empty", "a.jpg,1,2,3,4,\n"),
    ):
        fails(f"{path}, {text}", folder, table(head + lines))
    fails(f"{path} is not CSV in UTF-8", folder, table(head + '"a.jpg,1,2,3,4,cat\n'))
    fails(f"{path} is not CSV in UTF-8", folder, table(head + "\xe4.jpg,1,2,3,4,cat\n"))
    fails("the column 'difficult' is 'maybe'", folder, [{**rows()[0], "difficult": "maybe"}])


def test_mistakes_in_paths(folder, tmp_path):
    fails("do not exist. Relative paths start at", folder, tmp_path / "none.csv")
    for other in (folder, folder / "a.jpg"):
        fails(f"{other} is no file of boxes, and no folder with XML files.", folder, other)
    with pytest.raises(ImageError, match="does not exist"):
        annotated(tmp_path / "nowhere", coco_file(tmp_path), label="cat")


def test_missing_images_are_named_and_counted(folder, tmp_path):
    table = [*rows(dog=False), *({**rows()[0], "image": f"gone{i}.jpg"} for i in range(7))]
    with pytest.warns(UserWarning) as caught:
        check_same(annotated(folder, table), folder)
    assert len(caught) == 1
    assert str(caught[0].message) == (
        f"7 of 9 images that The table of boxes names are not in the folder {folder}: gone0.jpg, gone1.jpg, gone2.jpg, "
        "gone3.jpg, gone4.jpg, and 2 more. They are left out."
    )
    with pytest.raises(ImageError) as none:
        annotated(folder, table[3:])
    assert f"None of the 7 images that The table of boxes names is in the folder {folder}: gone0.jpg" in str(none.value)


# Reading


def read_one(boxes):
    """The boxes of one image of 60 × 40 pixels, as it is opened."""
    ((photo, _),) = read_all(annotated(np.zeros((1, 40, 60), np.uint8), [boxes]))
    return photo.boxes.tolist()


def test_boxes_are_cut_at_the_edges_of_the_image():
    with pytest.warns(UserWarning, match=r"^2 of 3 boxes stick out of their images and are cut off.$"):
        found = read_one([[5, 5, 20, 30], [-3, 5, 20, 45], [50, -1, 61, 3]])
    assert found == [[5, 5, 20, 30], [0, 5, 20, 40], [50, 0, 60, 3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_one([[0, 0, 60, 40]]) == [[0, 0, 60, 40]]


@pytest.mark.parametrize("box", [(60, 5, 70, 30), (-9, 5, 0, 30), (5, 40, 20, 50), (5, -9, 20, -1)])
def test_boxes_outside_are_refused(box):
    with pytest.raises(ValueError) as caught:
        read_one([(1, 1, 5, 5), box])
    assert "image 0: 1 of 2 boxes lie outside the image, which is 60 × 40 pixels" in str(caught.value)
    assert f"the first is {list(map(float, box))}" in str(caught.value)


def test_images_that_cannot_be_read_are_left_out(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 60, 3)).astype(np.uint8)
    gone = [tmp_path / f"{i}.jpg" for i in range(6)]
    images = [pixels, *gone, np.zeros((30, 20), np.uint8)]
    given = annotated(images, [[1, 2, 30, 44], *[None] * 6, [[0, 0, 5, 5], [-2, 3, 9, 9]]])
    with pytest.warns(UserWarning) as caught:
        found = list(read_all(given))
    assert [photo.name for photo, _ in found] == ["image 0", "image 7"]
    assert np.array_equal(found[0][1], pixels) and found[1][1].shape == (30, 20, 3)
    assert [photo.boxes.tolist() for photo, _ in found] == [[[1, 2, 30, 40]], [[0, 0, 5, 5], [0, 3, 9, 9]]]
    broken, cut = (str(one.message) for one in caught)
    assert broken.startswith("6 of 8 images cannot be used:\n  ") and broken.endswith(
        "\n  and 1 more\nThey are left out."
    )
    assert all(str(path) in broken for path in gone[:5]) and str(gone[5]) not in broken
    assert cut == "2 of 3 boxes stick out of their images and are cut off."


def test_nothing_to_learn_from_is_left(tmp_path):
    Image = pytest.importorskip("PIL.Image", reason="needs maxmargin[vision]")
    Image.fromarray(np.zeros((40, 60), np.uint8)).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes(b"no image")
    given = annotated(tmp_path, [{"image": "broken", "x": 1, "y": 2, "w": 29, "h": 38}])
    with pytest.raises(ImageError, match=r"1 of 2 images cannot be used:\n.*broken.png is not (.|\n)*no positives"):
        list(read_all(given))


def test_needs_neither_pillow_nor_pandas_nor_pyarrow():
    program = (
        "import sys\n"
        "for name in ('PIL', 'pandas', 'pyarrow'): sys.modules[name] = None\n"
        "import numpy as np\n"
        "from maxmargin.vision.detection.annotations import annotated\n"
        "from maxmargin.vision.detection.photos import read_all\n"
        "given = annotated(np.zeros((1, 40, 60), np.uint8), [[1, 2, 30, 40]])\n"
        "print(len(list(read_all(given))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "1", done.stderr
