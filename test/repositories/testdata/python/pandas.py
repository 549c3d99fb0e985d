"""The part of pandas that the skills of ba-agent use, for machines that reach no package index."""
import statistics


class Series(list):
    def mean(self):
        return statistics.fmean(self)

    def std(self):
        return statistics.stdev(self)

    def sum(self):
        return sum(self)

    def count(self):
        return len(self)

    def round(self, digits):
        return Series(round(value, digits) for value in self)

    def astype(self, kind):
        return Series(kind(value) for value in self)

    def tolist(self):
        return list(self)

    def __truediv__(self, divisor):
        return Series(value / divisor for value in self)

    def __mul__(self, factor):
        return Series(value * factor for value in self)


class DataFrame:
    def __init__(self, data):
        if isinstance(data, dict):
            data = [dict(zip(data, row)) for row in zip(*data.values())]
        self.iloc = [dict(row) for row in data]

    @property
    def columns(self):
        return list(self.iloc[0]) if self.iloc else []

    def __len__(self):
        return len(self.iloc)

    def __getitem__(self, column):
        return Series(row[column] for row in self.iloc)

    def __setitem__(self, column, values):
        for row, value in zip(self.iloc, values):
            row[column] = value

    def iterrows(self):
        return enumerate(self.iloc)

    def head(self, n):
        return DataFrame(self.iloc[:n])

    def sort_values(self, column, ascending=True):
        return DataFrame(sorted(self.iloc, key=lambda row: row[column], reverse=not ascending))

    def reset_index(self):
        return self

    def groupby(self, column):
        return Groups(self.iloc, column)


class Groups:
    def __init__(self, rows, by, column=None):
        self.rows, self.by, self.column = rows, by, column

    def __getitem__(self, column):
        return Groups(self.rows, self.by, column)

    def agg(self, names):
        groups = {}
        for row in self.rows:
            groups.setdefault(row[self.by], Series()).append(row[self.column])
        return DataFrame([{self.by: key, **{name: getattr(values, name)() for name in names}} for key, values in groups.items()])
