import{createFlowDiagram as e,styles_default as t}from"./chunk-SHT3W25Y-Dc6wyXOS.js";import"./chunk-POPQ4Y6H-_Zl7_2zt.js";import"./chunk-LNGE3PJU-DFktH2Gx.js";import"./chunk-TLUHSLCS-_-6zTib_.js";import"./chunk-F27PBJKO-hvp7IHLe.js";import"./chunk-L3NEJ4N5-Ciw2edxj.js";import"./chunk-OSK3NFVY-BFyk1SM7.js";import"./chunk-GVQU2GXP-ChL_2nM7.js";import"./chunk-4HAMMTFA-kn75Ii8a.js";import"./chunk-P2QGCYS3-BezDpXK9.js";import"./chunk-GMAD6QVW-Bdpzz_Cp.js";import"./chunk-PWAF6VOD-tZZAy3uu.js";import"./chunk-75Z2AOVW-Bft3UXkA.js";import"./chunk-DU6HZSFF-BWlRpZDE.js";import"./d3-selection-CjzNcl76.js";import{__name as n}from"./chunk-Y2CYZVJY-C4Ysjpgl.js";var r=e({defaultLayout:`swimlane`,styles:n(e=>`${t(e)}
  .swimlane.cluster rect {
    stroke: ${e.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};