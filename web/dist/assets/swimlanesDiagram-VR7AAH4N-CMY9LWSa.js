import{r as e,t}from"./chunk-SHT3W25Y-D76jky2X.js";import"./chunk-POPQ4Y6H-B94uaQa8.js";import"./diagram-Df3Ryekb.js";import"./chunk-F27PBJKO-BKubFZfk.js";import"./chunk-L3NEJ4N5-H0RNffQl.js";import"./chunk-OSK3NFVY-IP6sBkhY.js";import"./chunk-GVQU2GXP-A23c5lgP.js";import"./chunk-4HAMMTFA-C-tSeDK7.js";import"./chunk-P2QGCYS3-DFoiUd8M.js";import"./chunk-GMAD6QVW-B1VgtCcd.js";import"./chunk-PWAF6VOD-B8HeQGiy.js";import"./chunk-75Z2AOVW-CwhBF-1L.js";import"./chunk-DU6HZSFF-Bathx2fr.js";import"./d3-selection-CQOeqU2O.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};