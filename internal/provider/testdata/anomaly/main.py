from typing import Any, Dict, List, Literal, Optional


class DataFrame:
    """As that of pandas: rows, or columns by name."""

    def __init__(self, data):
        if isinstance(data, list) and not all(isinstance(row, dict) for row in data):
            raise ValueError("rows are objects")
        self.rows = data if isinstance(data, list) else [dict(zip(data, values)) for values in zip(*data.values())]

    def to_dict(self, orient):
        return self.rows


class Number:
    """As those of numpy."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


def detect(
    data: DataFrame,
    method: Literal["statistical", "historical"] = "statistical",
    threshold: float = 2.0,
    labels: List[str] = None,
    config: Optional[Dict[str, Any]] = None,
) -> Dict[str, Any]:
    """
    Finds anomalies.

    Args:
        data: rows (DataFrame, dict, list),
            with the columns date and value
        method (str): how they are found
        threshold: standard deviations

    Returns:
        the anomalies
    """
    print("looking for anomalies")
    values = [row["value"] for row in data.rows]
    mean = sum(values) / len(values)
    std = (sum((v - mean) ** 2 for v in values) / (len(values) - 1)) ** 0.5 if len(values) > 1 else float("nan")
    found = [row for row in data.rows if std > 0 and abs(row["value"] - mean) >= threshold * std]
    if method == "historical":
        raise RuntimeError("there is no history")
    return {"anomalies": DataFrame(found), "std": std, "count": Number(len(found)), "labels": labels, "config": config}
