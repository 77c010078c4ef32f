"""Series with changes planted, and where Apache Otava finds them: the expected data of tests/otava.rs.

    python3 -m venv /tmp/otava && /tmp/otava/bin/pip install apache-otava==0.8.0
    /tmp/otava/bin/python crates/figures/tests/made_by_otava.py > crates/figures/tests/otava.json

Its merge step tests anew only what follows a point that it takes away (analysis.py, `recompute`), so
the figures of the point before stay those of a shorter piece. Here its own tester looks at all that
are left once more.
"""
import json, numpy as np
from importlib.metadata import version
from otava.analysis import TTestSignificanceTester, compute_change_points
rng = np.random.default_rng(20231)
def levels(*parts, noise):
    return np.concatenate([l*(1+noise*rng.standard_normal(n)) for l,n in parts])
S = {
 "noise alone": levels((100,60),noise=0.03),
 "noise alone, long": levels((100,200),noise=0.05),
 "a tenth up": levels((100,30),(110,30),noise=0.02),
 "a tenth up and back": levels((250,25),(275,12),(250,25),noise=0.02),
 "a twentieth in much noise": levels((100,40),(105,40),noise=0.04),
 "stairs": levels((10,15),(12,15),(15,15),(11,15),noise=0.03),
 "a change near the end": levels((1000,40),(1200,4),noise=0.02),
 "long, with a short dip": levels((80,90),(70,10),(80,60),(84,60),noise=0.015),
 "one outlier": np.concatenate([levels((100,20),noise=0.02),[190.0],levels((100,20),noise=0.02)]),
 "counts": np.array([3000.0]*12+[3004.0]*9+[2950.0]*14),
 "few": np.array([100.0,101.0,99.5,120.0,121.0,119.0]),
 "drift": 100+0.3*np.arange(80)+rng.standard_normal(80),
}
out=[]
for name,v in S.items():
    v=[round(float(x),6) for x in v]
    cps,_=compute_change_points(list(v))
    tester=TTestSignificanceTester(0.001)
    cps=[tester.change_point(c.to_candidate(), v, tester.get_intervals(cps)) for c in cps]
    out.append(dict(name=name, values=v, found=[dict(at=int(c.index), before=float(c.stats.mean_1), after=float(c.stats.mean_2), p=float(c.stats.pvalue)) for c in cps]))
made_by = json.dumps(f"apache-otava {version('apache-otava')}, compute_change_points with its defaults (window 50, p 0.001)")
print("{\"made_by\": %s,\n\"series\": [\n%s\n]}" % (made_by, ",\n".join(map(json.dumps, out))))
