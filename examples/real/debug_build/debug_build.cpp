// A life game on a vector of vectors, built without optimization.
#include <cstdio>
#include <vector>

using Board = std::vector<std::vector<int>>;

static void step_board(const Board &now, Board &next)
{
    const int rows = (int)now.size(), cols = (int)now[0].size();
    for (int i = 1; i < rows - 1; i++)
        for (int j = 1; j < cols - 1; j++) {
            int alive = 0;
            for (int di = -1; di <= 1; di++)
                for (int dj = -1; dj <= 1; dj++)
                    alive += now[i + di][j + dj];
            next[i][j] = alive == 3 || (alive == 4 && now[i][j]);
        }
}

int main()
{
    Board now(400, std::vector<int>(400, 0)), next = now;
    for (int i = 1; i < 399; i++)
        for (int j = 1; j < 399; j++)
            now[i][j] = (i * 7 + j * 13) % 5 == 0;
    for (int step = 0; step < 60; step++) {
        step_board(now, next);
        now.swap(next);
    }
    int alive = 0;
    for (const auto &row : now)
        for (int cell : row)
            alive += cell;
    std::printf("%d\n", alive);
}
