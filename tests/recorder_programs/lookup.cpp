// Looks up names in a map, whose code, and the comparisons that it calls, are of the library.
#include <cstdio>
#include <map>
#include <string>

int main()
{
    std::map<std::string, double> table;
    for (int i = 0; i < 2000; i++)
        table["a name so long that comparing it takes a while: " + std::to_string(i)] = i;
    double sum = 0;
    for (int round = 0; round < 600; round++)
        for (const auto &entry : table)
            sum += table.find(entry.first)->second; // line 14
    std::printf("%g\n", sum);
}
