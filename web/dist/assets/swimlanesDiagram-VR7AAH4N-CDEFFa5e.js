import{r as e,t}from"./chunk-SHT3W25Y-BIu-KzzC.js";import"./chunk-POPQ4Y6H-DDljEAMo.js";import"./diagram-BUPbMTZA.js";import"./chunk-F27PBJKO-Cr2cGwQG.js";import"./chunk-L3NEJ4N5-K984ol1z.js";import"./chunk-OSK3NFVY-DaTu5Ggg.js";import"./chunk-GVQU2GXP-CYkwduuN.js";import"./chunk-4HAMMTFA-BsGyDf2q.js";import"./chunk-P2QGCYS3-BKvtjHqN.js";import"./chunk-GMAD6QVW-ClyAu-Mk.js";import"./chunk-PWAF6VOD-CTGzmXlt.js";import"./chunk-75Z2AOVW-DhQiZFe3.js";import"./chunk-DU6HZSFF-Bkc3tJaX.js";import"./d3-selection-CQOeqU2O.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};