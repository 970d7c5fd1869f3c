// Sorts numbers by the templates of the library, though only the largest is asked for; line 13 calls it.
#include <algorithm>
#include <cstdio>
#include <vector>

int main()
{
    std::vector<double> numbers(60000);
    double sum = 0;
    for (int round = 0; round < 60; round++) {
        for (std::size_t i = 0; i < numbers.size(); i++)
            numbers[i] = static_cast<double>((i * 7919 + round) % 60013);
        std::sort(numbers.begin(), numbers.end());
        sum += numbers.back();
    }
    std::printf("%g\n", sum);
}
