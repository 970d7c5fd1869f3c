"""Names of functions that exist only in code that was compiled without optimization."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.trace.library_functions import UNOPTIMIZED, count_by_name, is_unoptimized_access

VECTOR = "std::vector<double, std::allocator<double> >"
ACCESS = (
    f"{VECTOR}::operator[](unsigned long)",
    f"{VECTOR}::operator[](unsigned long) const",
    f"{VECTOR}::size() const",
    f"__gnu_cxx::__normal_iterator<double*, {VECTOR} >::operator++()",
    "bool __gnu_cxx::operator!=<int*, std::vector<int> >(__gnu_cxx::__normal_iterator<int*, std::vector<int> > const&)",
    "int&& std::forward<int>(std::remove_reference<int>::type&)",
    "std::_Head_base<0ul, int, false>::_M_head(std::_Head_base<0ul, int, false>&)",
    "std::unique_ptr<Node, std::default_delete<Node> >::operator->() const",
    "double const& std::max<double>(double const&, double const&)",
    "std::__1::vector<double, std::__1::allocator<double> >::operator[][abi:v160006](unsigned long)",
    "operator new(unsigned long, void*)",
    "_ZNSt6vectorIdSaIdEEixEm",
    "_ZN9__gnu_cxx17__normal_iteratorIPdSt6vectorIdSaIdEEEppEv",
)
OTHERS = (
    "operator new(unsigned long)",
    f"{VECTOR}::_M_realloc_insert(double const&)",
    f"{VECTOR}::push_back(double const&)",
    f"{VECTOR}::~vector()",
    "_ZNSt6vectorIiSaIiEE17_M_realloc_insertIJiEEEvN9__gnu_cxx17__normal_iteratorIPiS1_EEDpOT_",
    "std::unordered_map<int, int>::find(int const&)",
    "void std::sort<int*>(int*, int*)",
    "my::vector<int>::operator[](int)",
    f"Matrix::multiply({VECTOR} const&)",
    f"void scale<{VECTOR} >({VECTOR}&)",
    "main",
)


@pytest.mark.parametrize("name", ACCESS)
def test_access_to_containers_has_code_of_its_own_without_optimization_alone(name: str) -> None:
    assert is_unoptimized_access(name)


@pytest.mark.parametrize("name", OTHERS)
def test_what_has_code_of_its_own_anyway_tells_nothing(name: str) -> None:
    assert not is_unoptimized_access(name)


def test_seconds_are_counted_by_name() -> None:
    counts = count_by_name(["main", ACCESS[0]], np.array([[3.0], [2.0]]))
    assert counts[f"code.{UNOPTIMIZED}_s"].tolist() == [[0.0], [2.0]]
    assert counts["code.all_s"].tolist() == [[3.0], [2.0]]
    assert f"code.{UNOPTIMIZED}_s" not in count_by_name(["main", "memcpy"], np.array([[3.0], [2.0]]))


def test_names_of_any_length_are_looked_at_in_linear_time() -> None:
    name = "std::" + "vector<std::" * 20_000 + "operator[]( " * 20_000
    assert not is_unoptimized_access(name)
