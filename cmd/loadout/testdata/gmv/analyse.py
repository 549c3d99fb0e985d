import sys

import pandas as pd

sys.path.insert(0, "/needs/gmv_analysis/scripts")
import chart

table = pd.read_csv("gmv.csv")
days, gmv = table["date"], table["gmv"]
mean, sigma = gmv.mean(), gmv.std()
odd = [i for i, value in enumerate(gmv) if abs(value - mean) > 3 * sigma]
chart.bars("chart.png", gmv, odd)
with open("report.md", "w", encoding="utf-8") as f:
    f.write("# GMV 异动报告\n\n共 %d 天，异常 %d 天。\n\n" % (len(days), len(odd)))
    f.writelines("- %s：%.0f，均值 %.0f，σ %.0f\n" % (days[i], gmv[i], mean, sigma) for i in odd)
print("异常：", ", ".join(days[i] for i in odd))
