import{createFlowDiagram as e,styles_default as t}from"./chunk-SHT3W25Y-JlHnxDcv.js";import"./chunk-POPQ4Y6H-B3UGCZE3.js";import"./chunk-LNGE3PJU-DFktH2Gx.js";import"./chunk-TLUHSLCS-DMt2wxU_.js";import"./chunk-F27PBJKO-D_ItiqX7.js";import"./chunk-L3NEJ4N5-DCZXZ6Jw.js";import"./chunk-OSK3NFVY-DfBRM7fe.js";import"./chunk-GVQU2GXP-Bnly1MrN.js";import"./chunk-4HAMMTFA-CPeTeMvM.js";import"./chunk-P2QGCYS3-BSaEl9NU.js";import"./chunk-GMAD6QVW-BM02znpT.js";import"./chunk-PWAF6VOD-CuI8B5WE.js";import"./chunk-75Z2AOVW-D7S_p7KN.js";import"./chunk-DU6HZSFF-HH2KFf1A.js";import"./d3-selection-CjzNcl76.js";import{__name as n}from"./chunk-Y2CYZVJY-C4Ysjpgl.js";var r=e({defaultLayout:`swimlane`,styles:n(e=>`${t(e)}
  .swimlane.cluster rect {
    stroke: ${e.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};