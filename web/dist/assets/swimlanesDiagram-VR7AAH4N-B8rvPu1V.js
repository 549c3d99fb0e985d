import{r as e,t}from"./chunk-SHT3W25Y-DCX8L6RE.js";import"./chunk-POPQ4Y6H-B58uGttX.js";import"./diagram-CrRdX3RE.js";import"./chunk-F27PBJKO-Di--lUzL.js";import"./chunk-L3NEJ4N5-C4_WJmVY.js";import"./chunk-OSK3NFVY-DlpFVf0c.js";import"./chunk-GVQU2GXP-0-6-T6n-.js";import"./chunk-4HAMMTFA-Cq_viDiE.js";import"./chunk-P2QGCYS3-CebsqwuC.js";import"./chunk-GMAD6QVW-CjcNyAuE.js";import"./chunk-PWAF6VOD-i7VikHJF.js";import"./chunk-75Z2AOVW-Y-LJITSu.js";import"./chunk-DU6HZSFF-D1-2BcGT.js";import"./d3-selection-CQOeqU2O.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};