import{r as e,t}from"./chunk-SHT3W25Y-BhkSR7pw.js";import"./chunk-POPQ4Y6H-BZZzf1bE.js";import"./diagram-3LJwTJP7.js";import"./chunk-F27PBJKO-DA2bajXr.js";import"./chunk-L3NEJ4N5-B4YyUUw4.js";import"./chunk-OSK3NFVY-qXRdjVuT.js";import"./chunk-GVQU2GXP-D-A6RqnJ.js";import"./chunk-4HAMMTFA-DfvSVQSa.js";import"./chunk-P2QGCYS3-Cl8xIXnw.js";import"./chunk-GMAD6QVW-B7Yrx9WK.js";import"./chunk-PWAF6VOD-qHUFmhh0.js";import"./chunk-75Z2AOVW-DQDpaYCr.js";import"./chunk-DU6HZSFF-Tp345hJh.js";import"./d3-selection-CQOeqU2O.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};