import{r as e,t}from"./chunk-SHT3W25Y-BNHJO-DG.js";import"./chunk-POPQ4Y6H-BXcnnhYZ.js";import"./diagram-B8MCBIvK.js";import"./chunk-F27PBJKO-B676mgEC.js";import"./chunk-L3NEJ4N5-AVaNFHjL.js";import"./chunk-OSK3NFVY-CBoIZGHe.js";import"./chunk-GVQU2GXP-bCP1YXDm.js";import"./chunk-4HAMMTFA-X4bUEqa6.js";import"./chunk-P2QGCYS3-ism7r8ii.js";import"./chunk-GMAD6QVW-BXqDbqNb.js";import"./chunk-PWAF6VOD-DfJHbUS-.js";import"./chunk-75Z2AOVW-qqytqxaS.js";import"./chunk-DU6HZSFF-DMqj6SuC.js";import"./d3-selection-CQOeqU2O.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};