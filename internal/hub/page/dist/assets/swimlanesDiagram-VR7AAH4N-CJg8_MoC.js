import{createFlowDiagram as e,styles_default as t}from"./chunk-SHT3W25Y-cG4tXHAW.js";import"./chunk-POPQ4Y6H-CEOX77vF.js";import"./chunk-LNGE3PJU-DFktH2Gx.js";import"./chunk-TLUHSLCS-1OHQBH4O.js";import"./chunk-F27PBJKO-BDeSoNr4.js";import"./chunk-L3NEJ4N5-DKbT2htJ.js";import"./chunk-OSK3NFVY-aXlB7nyx.js";import"./chunk-GVQU2GXP-DiwCf_Aa.js";import"./chunk-4HAMMTFA-C7vQkLXs.js";import"./chunk-P2QGCYS3-vyp-w6nN.js";import"./chunk-GMAD6QVW-1q0pT7tF.js";import"./chunk-PWAF6VOD-D8LOsqgS.js";import"./chunk-75Z2AOVW-e6kET6XN.js";import"./chunk-DU6HZSFF-tThnPyhu.js";import"./d3-selection-CjzNcl76.js";import{__name as n}from"./chunk-Y2CYZVJY-C4Ysjpgl.js";var r=e({defaultLayout:`swimlane`,styles:n(e=>`${t(e)}
  .swimlane.cluster rect {
    stroke: ${e.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};